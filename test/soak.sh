#!/usr/bin/env bash
# Soak runs what takes too long for `make test`, whatever fails, and renews the
# lines of docs/soak.txt: which part ran how long, when and at which commit, and
# whether it passed. The full output goes to _output/soak-PART.log. Needs root;
# takes hours. PARTS runs some parts alone and leaves the lines of the others;
# REPEAT and SEEDS make it shorter, which the line shows.
set -uo pipefail
cd "$(dirname "$0")/.."

parts=${PARTS:-race simulation containerd cluster}
repeat=${REPEAT:-20}
seeds=${SEEDS:-100000}
tags=-tags=grpcnotrace
result=docs/soak.txt
commit=$(git rev-parse --short=12 HEAD)
[[ -z $(git status --porcelain --untracked-files=no -- ':!docs/soak.txt') ]] || commit+=+changes
mkdir -p _output
failed=0

# step PART WHAT COMMAND... runs one part, if it is asked for, and renews its line.
step() {
  local part=$1 what=$2 start=$SECONDS verdict=ok log=_output/soak-$1.log
  shift 2
  [[ " $parts " == *" $part "* ]] || return 0
  echo "=== $part ($what): see $log"
  "$@" >"$log" 2>&1 || { verdict=FAILED; failed=1; }
  grep -v "^$part " "$result" >"$result.new"
  printf '%-11s %-32s %-7s %6ds  %s  %s\n' "$part" "$what" "$verdict" $((SECONDS - start)) "$(date -u +%Y-%m-%d)" "$commit" >>"$result.new"
  mv "$result.new" "$result"
  tail -n 1 "$result"
}

units() { go list "$tags" ./... | grep -vE '/(test|examples|internal/policy)(/|$)'; }

containerd() { (cd test/integration && NODEKIT_SOAK=1 NODEKIT_REQUIRE_ALL=1 go test -count=1 -p=1 -timeout=0 -v ./...); }

cluster() { (cd test/cluster && export NODEKIT_SOAK=1 NODEKIT_REQUIRE_ALL=1 && go run ./cmd/install && go test -count=1 -p=1 -timeout=0 -v ./...); }

# shellcheck disable=SC2046 # one argument per package
step race "units, race, $repeat times" env NODEKIT_REQUIRE_ALL=1 go test -race "$tags" -count="$repeat" -timeout=0 $(units)
step simulation "$seeds seeds" env NODEKIT_SIM_SEEDS="$seeds" go test -count=1 -timeout=0 ./test/sim/...
step containerd "both containerds, every round" containerd
step cluster "control plane, every round" cluster
echo "$result is renewed, commit it"
exit $failed
