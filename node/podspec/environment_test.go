package podspec

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

func service(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
	s.Namespace, s.Name = namespace, name
	return s
}

func pairs(vars []runtime.EnvVar) []string {
	var out []string
	for _, v := range vars {
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}

func TestServiceVariables(t *testing.T) {
	master := service("default", "kubernetes", "10.96.0.1", corev1.ServicePort{Name: "https", Port: 443})
	services := []*corev1.Service{
		service("shop", "db-main", "10.96.0.5",
			corev1.ServicePort{Port: 5432}, corev1.ServicePort{Name: "admin-ui", Port: 80, Protocol: corev1.ProtocolUDP}),
		service("shop", "headless", "None", corev1.ServicePort{Port: 1}),
		service("shop", "no-address", "", corev1.ServicePort{Port: 1}),
		service("shop", "no-ports", "10.96.0.6"),
		service("shop", "six", "fd00::6", corev1.ServicePort{Port: 6}),
		service("default", "other", "10.96.0.7", corev1.ServicePort{Port: 7}),
		master,
	}
	own := []string{
		"DB_MAIN_SERVICE_HOST=10.96.0.5", "DB_MAIN_SERVICE_PORT=5432", "DB_MAIN_SERVICE_PORT_ADMIN_UI=80",
		"DB_MAIN_PORT=tcp://10.96.0.5:5432",
		"DB_MAIN_PORT_5432_TCP=tcp://10.96.0.5:5432", "DB_MAIN_PORT_5432_TCP_PROTO=tcp", "DB_MAIN_PORT_5432_TCP_PORT=5432", "DB_MAIN_PORT_5432_TCP_ADDR=10.96.0.5",
		"DB_MAIN_PORT_80_UDP=udp://10.96.0.5:80", "DB_MAIN_PORT_80_UDP_PROTO=udp", "DB_MAIN_PORT_80_UDP_PORT=80", "DB_MAIN_PORT_80_UDP_ADDR=10.96.0.5",
	}
	kubernetes := []string{
		"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443", "KUBERNETES_SERVICE_PORT_HTTPS=443",
		"KUBERNETES_PORT=tcp://10.96.0.1:443",
		"KUBERNETES_PORT_443_TCP=tcp://10.96.0.1:443", "KUBERNETES_PORT_443_TCP_PROTO=tcp", "KUBERNETES_PORT_443_TCP_PORT=443", "KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1",
	}
	six := []string{
		"SIX_SERVICE_HOST=fd00::6", "SIX_SERVICE_PORT=6", "SIX_PORT=tcp://[fd00::6]:6",
		"SIX_PORT_6_TCP=tcp://[fd00::6]:6", "SIX_PORT_6_TCP_PROTO=tcp", "SIX_PORT_6_TCP_PORT=6", "SIX_PORT_6_TCP_ADDR=fd00::6",
	}
	for name, tc := range map[string]struct {
		links *bool
		want  []string
	}{
		"links":    {new(true), slices.Concat(own, kubernetes, six)},
		"not said": {nil, slices.Concat(own, kubernetes, six)},
		"no links": {new(false), kubernetes},
	} {
		t.Run(name, func(t *testing.T) {
			pod := simplePod(func(p *corev1.Pod) { p.Namespace, p.Spec.EnableServiceLinks = "shop", tc.links })
			got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{
				Pod: pod, Container: "main", Environment: podactor.EnvironmentResult{Services: services},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, pairs(got.Env)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	shadowed := []*corev1.Service{service("shop", "kubernetes", "10.96.9.9", corev1.ServicePort{Port: 1}), master}
	pod := simplePod(func(p *corev1.Pod) { p.Namespace = "shop" })
	for range 2 {
		if got := serviceVars(pod, shadowed)[0].Value; got != "10.96.9.9" {
			t.Errorf("the namespace's own service named kubernetes has %s", got)
		}
		slices.Reverse(shadowed)
	}
}

func configMapRef(name string, optional bool) *corev1.ConfigMapEnvSource {
	return &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional}
}

func secretRef(name string, optional bool) *corev1.SecretEnvSource {
	return &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional}
}

func configMapVar(env, name, key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: env, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}}
}

func secretVar(env, name, key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: env, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}}
}

func fileVar(env, path, key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: env, ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
		VolumeName: "v", Path: path, Key: key, Optional: &optional,
	}}}
}

// objects are what there is in the tests below.
func objects() podactor.EnvironmentResult {
	return podactor.EnvironmentResult{
		ConfigMaps: map[string]*corev1.ConfigMap{"cm": {Data: map[string]string{"B": "b", "A": "a", "dot.ted": "d"}}},
		Secrets:    map[string]*corev1.Secret{"sec": {Data: map[string][]byte{"A": []byte("hush"), "BIN": {0xff, 'x'}}}},
		Files:      map[podactor.EnvFile][]byte{{Volume: "v", Path: "env"}: []byte("# head\nK='v # 1'\nEMPTY=''\nM='two\nlines' # end\n")},
		Services:   []*corev1.Service{service("default", "svc", "10.96.0.5", corev1.ServicePort{Port: 1})},
	}
}

func TestEnvironmentFromObjects(t *testing.T) {
	const rest = 7 // variables of the service
	for name, tc := range map[string]struct {
		from []corev1.EnvFromSource
		env  []corev1.EnvVar
		want []string // without those of the service
	}{
		"whole, a later one wins": {
			[]corev1.EnvFromSource{{ConfigMapRef: configMapRef("cm", false)}, {SecretRef: secretRef("sec", false)}}, nil,
			[]string{"A=hush", "B=b", "dot.ted=d", "BIN=\xffx"},
		},
		"prefixes": {
			[]corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: configMapRef("cm", false)}, {Prefix: "S-", SecretRef: secretRef("sec", false)}}, nil,
			[]string{"P_A=a", "P_B=b", "P_dot.ted=d", "S-A=hush", "S-BIN=\xffx"},
		},
		"optional and missing": {
			[]corev1.EnvFromSource{{ConfigMapRef: configMapRef("no", true)}, {SecretRef: secretRef("no", true)}},
			[]corev1.EnvVar{
				configMapVar("1", "no", "A", true), configMapVar("2", "cm", "no", true),
				secretVar("3", "no", "A", true), secretVar("4", "sec", "no", true),
				fileVar("5", "no", "K", true), fileVar("6", "env", "no", true), fileVar("7", "env", "EMPTY", true),
			},
			nil,
		},
		"keys": {
			nil, []corev1.EnvVar{
				configMapVar("1", "cm", "dot.ted", false), secretVar("2", "sec", "A", false), fileVar("3", "env", "K", false), fileVar("4", "env", "M", false),
				{Name: "5", Value: "$(1)$(2)"},
			},
			[]string{"1=d", "2=hush", "3=v # 1", "4=two\nlines", "5=dhush"},
		},
		"own over whole, which own may use": {
			[]corev1.EnvFromSource{{ConfigMapRef: configMapRef("cm", false)}},
			[]corev1.EnvVar{{Name: "A", Value: "my-$(A)-$(B)"}},
			[]string{"A=my-a-b", "B=b", "dot.ted=d"},
		},
		"an optional one that is missing leaves what was there": {
			[]corev1.EnvFromSource{{ConfigMapRef: configMapRef("cm", false)}},
			[]corev1.EnvVar{configMapVar("A", "no", "A", true)},
			[]string{"A=a", "B=b", "dot.ted=d"},
		},
		"of services": {
			nil, []corev1.EnvVar{{Name: "URL", Value: "http://$(SVC_SERVICE_HOST)"}},
			[]string{"URL=http://10.96.0.5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := simplePod(func(p *corev1.Pod) { p.Spec.Containers[0].EnvFrom, p.Spec.Containers[0].Env = tc.from, tc.env })
			got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main", Environment: objects()})
			if err != nil {
				t.Fatal(err)
			}
			vars := pairs(got.Env)
			if len(vars) < rest || vars[len(vars)-rest] != "SVC_SERVICE_HOST=10.96.0.5" {
				t.Fatalf("the service's variables are missing: %q", vars)
			}
			if diff := cmp.Diff(tc.want, vars[:len(vars)-rest]); diff != "" && len(vars) > rest {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnVariableReplacesAService(t *testing.T) {
	pod := simplePod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SVC_SERVICE_HOST", Value: "not-$(SVC_SERVICE_HOST)"}}
	})
	got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main", Environment: objects()})
	if err != nil || got.Env[0].Value != "not-10.96.0.5" || slices.Contains(pairs(got.Env), "SVC_SERVICE_HOST=10.96.0.5") {
		t.Errorf("%q, %v", pairs(got.Env), err)
	}
}

// TestMissingObjects: the words are the stock kubelet's, and the whole of what a
// container's status says.
func TestMissingObjects(t *testing.T) {
	for want, change := range map[string]func(*corev1.Container){
		`configmap "no" not found`: func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: configMapRef("no", false)}}
		},
		`secret "no" not found`:                                    func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{SecretRef: secretRef("no", false)}} },
		`configmap "gone" not found`:                               func(c *corev1.Container) { c.Env = []corev1.EnvVar{configMapVar("X", "gone", "A", false)} },
		`secret "gone" not found`:                                  func(c *corev1.Container) { c.Env = []corev1.EnvVar{secretVar("X", "gone", "A", false)} },
		`couldn't find key no in ConfigMap default/cm`:             func(c *corev1.Container) { c.Env = []corev1.EnvVar{configMapVar("X", "cm", "no", false)} },
		`couldn't find key no in Secret default/sec`:               func(c *corev1.Container) { c.Env = []corev1.EnvVar{secretVar("X", "sec", "no", false)} },
		`couldn't parse env file: volume "v" has no file "no"`:     func(c *corev1.Container) { c.Env = []corev1.EnvVar{fileVar("X", "no", "K", false)} },
		`environment variable key "no" not found in file "env"`:    func(c *corev1.Container) { c.Env = []corev1.EnvVar{fileVar("X", "env", "no", false)} },
		`environment variable key "EMPTY" not found in file "env"`: func(c *corev1.Container) { c.Env = []corev1.EnvVar{fileVar("X", "env", "EMPTY", false)} },
	} {
		pod := simplePod(func(p *corev1.Pod) { change(&p.Spec.Containers[0]) })
		_, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main", Environment: objects()})
		if err == nil || err.Error() != want || reasoned.Reason(err, "") != "CreateContainerConfigError" || reasoned.Fatal(err) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestEnvFileValue(t *testing.T) {
	for content, want := range map[string]string{
		"":                              "",
		"K='v'":                         "v",
		"  \tK='v'\n":                   "v",
		"#K='a'\n\n   \nK='b'":          "b",
		"K='a'\nK='b'":                  "a",
		"A='1'\nK='x' # why\nbroken":    "x",
		"K='$HOME \"quoted\" \\n'":      "$HOME \"quoted\" \\n",
		"K='one\n two\n\nthree'\nA='1'": "one\n two\n\nthree",
		"K= 'v'":                        "",
		"K='a=b'":                       "a=b",
		"K=''":                          "",
		"KK='no'":                       "",
		"K='v'\r\nA='1'\r\n":            "v",
		"broken\nK='v'":                 "!line 1: missing '='",
		"\n=x":                          "!line 2: empty variable name",
		"K ='v'":                        "!line 1: whitespace before '='",
		"K=v":                           "!line 1: value must be enclosed in single quotes",
		"K=":                            "!line 1: value must be enclosed in single quotes",
		"K=\"v\"":                       "!line 1: value must be enclosed in single quotes",
		"K='v'x":                        "!line 1: unexpected content after closing quote",
		"A='1'\nK='v\nw":                "!starting at line 2: unclosed single quote",
		"A='x\n\ny'z":                   "!line 3: unexpected content",
	} {
		got, err := envFileValue([]byte(content), "K")
		part, wrong := strings.CutPrefix(want, "!")
		if wrong && (err == nil || !strings.Contains(err.Error(), part)) || !wrong && (err != nil || got != want) {
			t.Errorf("%q: %q, %v; want %q", content, got, err, want)
		}
	}
}

// FuzzEnvFile: whatever a container writes, what is found was written, and
// reading ends.
func FuzzEnvFile(f *testing.F) {
	for _, seed := range []string{"K='v'", "K='a\nb' # c\nL='d'", "# x\n=y", "K= z"} {
		f.Add(seed, "K")
	}
	f.Fuzz(func(t *testing.T, content, name string) {
		got, err := envFileValue([]byte(content), name)
		if err == nil && !strings.Contains(strings.ReplaceAll(content, "\r\n", "\n"), got) {
			t.Errorf("%q is not in %q", got, content)
		}
	})
}
