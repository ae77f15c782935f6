package probe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var somePorts = []corev1.ContainerPort{
	{ContainerPort: 1}, {Name: "web", ContainerPort: 8080}, {Name: "web", ContainerPort: 8081},
	{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {Name: "bad", ContainerPort: 70000},
}

func TestPortOf(t *testing.T) {
	for _, c := range []struct {
		port intstr.IntOrString
		want int // 0: refused
	}{
		{intstr.FromInt32(80), 80}, {intstr.FromInt32(1), 1}, {intstr.FromInt32(65535), 65535},
		{intstr.FromInt32(0), 0}, {intstr.FromInt32(-1), 0}, {intstr.FromInt32(65536), 0},
		{intstr.FromString("web"), 8080}, {intstr.FromString("dns"), 53}, {intstr.FromString("81"), 81},
		{intstr.FromString(""), 0}, {intstr.FromString("Web"), 0}, {intstr.FromString("none"), 0},
		{intstr.FromString("bad"), 0}, {intstr.FromString("0"), 0}, {intstr.FromString("80 "), 0},
		{intstr.FromString("4294967376"), 0}, {intstr.FromString("99999999999999999999"), 0},
	} {
		got, err := PortOf(c.port, somePorts)
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%s: got %d, %v, want %d", c.port.String(), got, err, c.want)
		}
	}
}

func TestAddress(t *testing.T) {
	target := Target{Host: "fd00::7", Ports: somePorts}
	for host, want := range map[string]string{"": "[fd00::7]:8080", "10.0.0.1": "10.0.0.1:8080", "a.test": "a.test:8080"} {
		if got, err := target.Address(host, intstr.FromString("web")); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", host, got, err, want)
		}
	}
	if got, err := (&Target{}).Address("", intstr.FromInt32(80)); err == nil {
		t.Errorf("without a host: %q", got)
	}
}

// FuzzPortOf: a port is one that can be dialled, or an error.
func FuzzPortOf(f *testing.F) {
	f.Add("web", "web", int32(8080))
	f.Add("80", "web", int32(0))
	f.Fuzz(func(t *testing.T, text, name string, number int32) {
		ports := []corev1.ContainerPort{{Name: name, ContainerPort: number}}
		for _, port := range []intstr.IntOrString{intstr.FromString(text), intstr.FromInt32(number)} {
			got, err := PortOf(port, ports)
			if (err == nil) != (got >= 1 && got <= 65535) {
				t.Fatalf("%+v: %d, %v", port, got, err)
			}
			if port.Type == intstr.String && text == name && text != "" && err == nil && got != int(number) {
				t.Fatalf("the port of that name is %d, not %d", number, got)
			}
		}
	})
}
