package script

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	kubelet "nodekit.dev/cmd/kubelet/app"
	nodectl "nodekit.dev/cmd/nodectl/app"
	"nodekit.dev/runtime/runtimetest"
)

var update = flag.Bool("update", false, "write what is printed into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubelet": func() { os.Exit(kubelet.Main(os.Args[1:])) },
		"agent":   func() { os.Exit(kubelet.Main(append(agentFlags(), os.Args[1:]...))) },
		"nodectl": func() { os.Exit(nodectl.Main(append(nodectlFlags(os.Getenv("WORK")), os.Args[1:]...))) },
	})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup:         func(env *testscript.Env) error { return setUp(t, env) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await,
			"blot":  blotFile,
			"world": world,
		},
	})
}

// agentConfig is what agents of scripts need beside what they are about: nothing of
// the host is touched, ports included.
const agentConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
healthzPort: 0
oomScoreAdj: 0
failCgroupV1: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
maxOpenFiles: 1
logging: {flushFrequency: 10ms}
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
`

type worldKey struct{}

func setUp(t *testing.T, env *testscript.Env) error {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	server := w.Serve(t, env.WorkDir)
	env.Values[worldKey{}] = w
	env.Setenv("ENDPOINT", server.Endpoint())
	for _, dir := range []string{"manifests", "conf.d"} {
		if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
			return err
		}
	}
	text := agentConfig + "podLogsDir: " + filepath.Join(env.WorkDir, "log", "pods") + "\n"
	return os.WriteFile(filepath.Join(env.WorkDir, "kubelet.yaml"), []byte(text), 0o600)
}

func agentFlags() []string {
	work := os.Getenv("WORK")
	return []string{
		"--config=" + filepath.Join(work, "kubelet.yaml"),
		"--config-dir=" + filepath.Join(work, "conf.d"),
		"--root-dir=" + rootDir(work),
		"--pod-manifest-path=" + filepath.Join(work, "manifests"),
		"--container-runtime-endpoint=" + os.Getenv("ENDPOINT"),
		"--hostname-override=node1",
		"--node-ip=192.0.2.1",
	}
}

func nodectlFlags(work string) []string { return []string{"--root-dir=" + rootDir(work)} }

func rootDir(work string) string { return filepath.Join(work, "root") }
