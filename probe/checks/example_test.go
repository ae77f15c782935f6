package checks_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
	"nodekit.dev/probe/checks"
)

// A pod's handler, checked by the kind that it names.
func Example() {
	set := checks.Default(checks.Config{})
	handler := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("web")}}
	outcome := set[probe.KindOf(handler)](context.Background(), probe.Target{Host: "10.0.0.7", Handler: handler})
	fmt.Println(outcome.Result == probe.Unknown, outcome.Err)
	// Output: true port "web" is neither a number nor the name of a port of the container
}
