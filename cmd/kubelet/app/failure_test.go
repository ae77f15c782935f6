package app

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the stock kubelet lost ends with its line, and a second one that helps.
func TestRemovedFlags(t *testing.T) {
	for _, name := range strings.Fields(`docker-endpoint image-pull-progress-deadline network-plugin cni-conf-dir cni-bin-dir cni-cache-dir
		network-plugin-mtu experimental-dockershim-root-directory container-runtime pod-infra-container-image non-masquerade-cidr
		really-crash-for-testing experimental-check-node-capabilities-before-mount`) {
		for _, spelled := range []string{name, strings.ReplaceAll(name, "-", "_")} {
			code, stdout, stderr := once(t, []string{"--" + spelled + "=x"})
			got := lines(stderr)
			if code != 1 || stdout != "" || len(got) != 2 {
				t.Errorf("--%s: exit code %d, %q, %q", spelled, code, stdout, stderr)
				continue
			}
			wantLine(t, got[0], header+`failed to parse kubelet flag: unknown flag: --`+spelled+`"$`)
			wantLine(t, got[1], `^--`+name+`: Removed in v1\.\d\d.*\.`)
		}
	}
}

func TestRemovedGates(t *testing.T) {
	for _, name := range strings.Fields("SetHostnameAsFQDN RuntimeClass PodOverhead GRPCContainerProbe IdentifyPodOS") {
		b := newBed(t)
		for _, args := range [][]string{
			{"--feature-gates=" + name + "=true"},
			{"--config=" + b.config(t, "featureGates: {"+name+": false}\n")},
		} {
			code, _, stderr := once(t, args)
			got := lines(stderr)
			if code != 1 || len(got) < 2 {
				t.Fatalf("%v: exit code %d, %q", args, code, stderr)
			}
			wantLine(t, got[failedAt(got)], header+`failed to set feature gates from initial flags-based config: unrecognized feature gate: `+name+`"$`)
			wantLine(t, got[len(got)-1], `^Feature gate `+name+` was removed in v1\.\d\d; the feature is always on\.`)
		}
	}
}

// Every way to fail exits with 1, and the last line of the log is the cause,
// in both formats.
func TestFailures(t *testing.T) {
	b := newBed(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's listener
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(b.dir, "empty")
	if err := os.WriteFile(empty, []byte("maxPods: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, config string
		flags        []string
		want         string
	}{
		{name: "an argument", flags: []string{"foo"}, want: `unknown command foo`},
		{name: "a flag's value", flags: []string{"--v=loud"}, want: `failed to parse kubelet flag: invalid argument "loud" for "-v, --v" flag: want a whole number`},
		{name: "a gate's value", flags: []string{"--feature-gates=A"}, want: `failed to parse kubelet flag: invalid argument "A" for "--feature-gates" flag: missing bool value for A`},
		{name: "no such file", flags: []string{"--config=/nowhere/k.yaml"}, want: `failed to load kubelet config file /nowhere/k.yaml: open /nowhere/k.yaml: no such file or directory`},
		{name: "no such folder", flags: []string{"--config-dir=/nowhere"}, want: `failed to read the drop-in folder /nowhere: lstat /nowhere: no such file or directory`},
		{name: "no kind", flags: []string{"--config=" + empty}, want: `apiVersion and kind must be set`},
		{name: "a wrong value", config: "nodeStatusMaxImages: -2\n", want: `failed to validate kubelet configuration, error: invalid configuration: nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater`},
		{name: "an empty endpoint", flags: []string{"--container-runtime-endpoint="}, want: `failed to validate kubelet configuration, error: invalid configuration: the containerRuntimeEndpoint was not specified or empty`},
		{name: "an endpoint that is no socket", flags: []string{"--container-runtime-endpoint=tcp://127.0.0.1:1"}, want: `only support unix socket endpoint`},
		{name: "an image endpoint that is no socket", flags: []string{"--image-service-endpoint=npipe://x"}, want: `protocol "npipe" not supported`},
		{name: "an unknown field", config: "maxPod: 1\n", flags: []string{"--config-strict"}, want: `kubelet.yaml:11: unknown field "maxPod" (did you mean "maxPods"?)`},
		{name: "a loopback IP", flags: []string{"--node-ip=127.0.0.1"}, want: `failed to run Kubelet: bad --node-ip "127.0.0.1": nodeIP can't be loopback address`},
		{name: "a bad name", flags: []string{"--hostname-override=not_a_name"}, want: `failed to run Kubelet: node name "not_a_name": `},
		{name: "a taken port", config: "healthzPort: " + port + "\n", want: `failed to run Kubelet: server: listen tcp 127.0.0.1:` + port + `: bind: address already in use`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, format := range []string{"text", "json"} {
				args := append(b.flags(t, row.config), "--logging-format="+format)
				code, _, stderr := once(t, append(args, row.flags...))
				got := lines(stderr)
				last := got[failedAt(got)]
				pattern := header + ".*" + quoted(row.want)
				if format == "json" {
					pattern = `^{"ts":\d+\.?\d*,"caller":"app/failure.go:\d+","msg":"command failed","err":".*` + quoted(row.want)
				}
				if code != 1 {
					t.Errorf("%s: exit code %d", format, code)
				}
				wantLine(t, last, pattern)
			}
		})
	}
}

// failedAt is the line that tells why; hints follow it.
func failedAt(lines []string) int {
	at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "command failed") })
	return max(at, 0)
}

// What the agent says when nothing tells it where the API server is.
func TestKubeconfigFailures(t *testing.T) {
	b := newBed(t)
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(b.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone, goneToo := filepath.Join(b.dir, "kubelet.conf"), filepath.Join(b.dir, "bootstrap.conf")
	empty := file("empty.conf", "")
	torn := file("torn.conf", "apiVersion: v1\nkind: Config\nclusters:\n- cluster: {server: http")
	const ran = "failed to run Kubelet: "
	for name, row := range map[string]struct{ kubeconfig, bootstrap, want string }{
		"absent":       {gone, "", ran + "kubeconfig " + gone + " does not exist: write it, or give a bootstrap kubeconfig"},
		"torn":         {torn, "", ran + "kubeconfig " + torn + " is not valid: mend or replace it: yaml: "},
		"empty":        {empty, "", ran + "kubeconfig " + empty + " names no cluster: add one"},
		"a folder":     {b.dir, "", ran + "kubeconfig " + b.dir + " can not be read: "},
		"only one":     {"", torn, ran + "--bootstrap-kubeconfig needs --kubeconfig"},
		"both absent":  {gone, goneToo, ran + "no way to reach the API server: bootstrap kubeconfig " + goneToo + " does not exist: write it, with credentials"},
		"torn, absent": {torn, goneToo, "does not exist: write it, with credentials that may ask for a node's certificate: open " + goneToo + ": no such file or directory; and the node's own credentials do not do: kubeconfig " + torn + " is not valid: mend or replace it: yaml: "},
		"absent, torn": {gone, torn, "bootstrap kubeconfig " + torn + " is not valid: mend or replace it: yaml: "},
		"absent, empty": {gone, empty, "bootstrap kubeconfig " + empty + " names no cluster: add one with the server's URL, a user, and a context of both; " +
			"and the node's own credentials do not do: kubeconfig " + gone + " was not written yet"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := once(t, append(b.flags(t, ""), "--kubeconfig="+row.kubeconfig, "--bootstrap-kubeconfig="+row.bootstrap))
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			got := lines(stderr)
			wantLine(t, got[failedAt(got)], header+".*"+quoted(row.want))
		})
	}
}

func TestHintInJSON(t *testing.T) {
	_, _, stderr := once(t, []string{"--logging-format=json", "--network-plugin=cni"})
	got := lines(stderr)
	if len(got) != 2 {
		t.Fatal(stderr)
	}
	wantLine(t, got[1], `^{"ts":.*"msg":"what to do","hint":"--network-plugin: Removed in v1\.24`)
}

func TestUnknownFlagThatNeverWas(t *testing.T) {
	_, _, stderr := once(t, []string{"--kubeconfg=x"})
	got := lines(stderr)
	wantLine(t, got[0], header+`failed to parse kubelet flag: unknown flag: --kubeconfg"$`)
	wantLine(t, got[1], `^--kubeconfg is not a flag of this kubelet\. Did you mean --kubeconfig\? See kubelet --help\.$`)
}

// The root directory belongs to one agent; a second one is told whose it is.
func TestSecondAgent(t *testing.T) {
	b := newBed(t)
	args := b.flags(t, "")
	_, stop := start(t, args)
	var parts []string
	b.get(t, "/debug/parts", &parts)
	code, _, stderr := once(t, args)
	if code != 1 || !strings.Contains(stderr, "is in use by the agent node1 (pid ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	b.get(t, "/debug/parts", &parts) // the first one still answers
	if code := stop(); code != 0 {
		t.Errorf("the first agent ends with %d", code)
	}
}
