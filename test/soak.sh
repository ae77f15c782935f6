#!/usr/bin/env bash
# Soak runs what takes too long for `make test`, whatever fails, and writes
# docs/soak.txt: when, at which commit, what passed. The full output goes to
# _output/soak.log. Needs root; takes hours. REPEAT and SEEDS make it shorter.
set -uo pipefail
cd "$(dirname "$0")/.."

repeat=${REPEAT:-20}
seeds=${SEEDS:-100000}
tags=-tags=grpcnotrace
mkdir -p _output
log=$PWD/_output/soak.log
result=$PWD/_output/soak.txt
: >"$log"
failed=0

# step NAME COMMAND... runs one part; it adds a line to the result.
step() {
  local name=$1 start=$SECONDS verdict=ok
  shift
  echo "=== $name: $*" >>"$log"
  "$@" >>"$log" 2>&1 || { verdict=FAILED; failed=1; }
  printf '%-40s %-7s %6ds\n' "$name" "$verdict" $((SECONDS - start)) | tee -a "$result"
}

units() { go list "$tags" ./... | grep -vE '/(test|examples|internal/policy)(/|$)'; }

integration() { (cd test/integration && NODEKIT_SOAK=1 NODEKIT_REQUIRE_ALL=1 go test -count=1 -p=1 -timeout=0 -v ./...); }

cluster() { (cd test/cluster && export NODEKIT_SOAK=1 NODEKIT_REQUIRE_ALL=1 && go run ./cmd/install && go test -count=1 -p=1 -timeout=0 -v ./...); }

changed=$(git status --porcelain --untracked-files=no | wc -l)
{
  echo "# The last make soak, on $(date -u +%Y-%m-%d) at commit $(git rev-parse --short=12 HEAD), $changed files changed since"
  echo "# $(go version | cut -d' ' -f3-), Linux $(uname -r), $(nproc) CPUs"
} | tee "$result"
# shellcheck disable=SC2046 # one argument per package
step "unit, race, $repeat times" env NODEKIT_REQUIRE_ALL=1 go test -race "$tags" -count="$repeat" -timeout=0 $(units)
step "simulation, $seeds seeds" env NODEKIT_SIM_SEEDS="$seeds" go test -count=1 -timeout=0 ./test/sim/...
step "real containerds, every round" integration
step "real control plane, every round" cluster
cp "$result" docs/soak.txt
echo "details in $log; docs/soak.txt is written, commit it"
exit $failed
