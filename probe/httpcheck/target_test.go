package httpcheck

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
)

func httpGet(get corev1.HTTPGetAction) probe.Target {
	return probe.Target{
		Host:    "10.0.0.7",
		Ports:   []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
		Handler: corev1.ProbeHandler{HTTPGet: &get},
	}
}

func TestTargetOf(t *testing.T) {
	web := intstr.FromString("web")
	for want, get := range map[string]corev1.HTTPGetAction{
		"http://10.0.0.7:8080":              {Port: web},
		"http://10.0.0.7:8080/":             {Port: web, Path: "/"},
		"https://10.0.0.7:8080/a":           {Port: web, Path: "/a", Scheme: corev1.URISchemeHTTPS},
		"http://10.0.0.7:8080/b":            {Port: web, Path: "b", Scheme: corev1.URISchemeHTTP},
		"http://[fd00::7]:81/":              {Port: intstr.FromInt32(81), Path: "/", Host: "fd00::7"},
		"http://a.test:8080/":               {Port: web, Path: "/", Host: "a.test"},
		"http://10.0.0.7:8080/q?a=1&b=%20":  {Port: web, Path: "/q?a=1&b=%20"},
		"http://10.0.0.7:8080?a=1":          {Port: web, Path: "?a=1"},
		"http://10.0.0.7:8080/q?":           {Port: web, Path: "/q?"},
		"http://10.0.0.7:8080/a%2Fb":        {Port: web, Path: "/a%2Fb"},
		"http://10.0.0.7:8080/c%2Fb":        {Port: web, Path: "c%2Fb"},
		"http://10.0.0.7:8080/a%20b":        {Port: web, Path: "/a b"},
		"http://10.0.0.7:8080/%25zz%3Fa=1":  {Port: web, Path: "/%zz?a=1"}, // no URL: a path as a whole
		"http://10.0.0.7:8080/:x":           {Port: web, Path: ":x"},
		"http://10.0.0.7:8080/urn:x":        {Port: web, Path: "urn:x"},
		"http://10.0.0.7:8080/x":            {Port: web, Path: "http://u:p@evil.test:1/x#part"},
		"http://10.0.0.7:8080/y":            {Port: web, Path: "//evil.test/y"},
		"http://10.0.0.7:8080/%0D%0AX:%20y": {Port: web, Path: "/\r\nX: y"},
	} {
		got, err := TargetOf(httpGet(get), false)
		if err != nil || got.URL.String() != want {
			t.Errorf("%+v: got %v, %v, want %s", get, got.URL, err, want)
		}
	}
}

func TestTargetOfProtocol(t *testing.T) {
	two, one := corev1.HTTPProtocolHTTP2, corev1.HTTPProtocol("HTTP1")
	for _, c := range []struct {
		protocol  *corev1.HTTPProtocol
		h2c, want bool
	}{{nil, true, false}, {&one, true, false}, {&two, true, true}, {&two, false, false}} {
		got, err := TargetOf(httpGet(corev1.HTTPGetAction{Port: intstr.FromInt32(80), Protocol: c.protocol}), c.h2c)
		if err != nil || got.H2C != c.want {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

func TestTargetOfRefuses(t *testing.T) {
	noHost := httpGet(corev1.HTTPGetAction{Port: intstr.FromInt32(80)})
	noHost.Host = ""
	for name, target := range map[string]probe.Target{
		"no httpGet": {Host: "10.0.0.7"},
		"no host":    noHost,
		"port name":  httpGet(corev1.HTTPGetAction{Port: intstr.FromString("none")}),
		"port zero":  httpGet(corev1.HTTPGetAction{}),
		"scheme":     httpGet(corev1.HTTPGetAction{Port: intstr.FromInt32(80), Scheme: "ftp"}),
	} {
		if got, err := TargetOf(target, true); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNoURL: what can not be asked says nothing of the pod.
func TestNoURL(t *testing.T) {
	target, err := TargetOf(httpGet(corev1.HTTPGetAction{Port: intstr.FromInt32(80), Host: "a b"}), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := New(Config{}).Check(t.Context(), target); got.Result != probe.Unknown || got.Err == nil {
		t.Errorf("%+v", got)
	}
}
