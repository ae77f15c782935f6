package register_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/node"
	"nodekit.dev/node/register"
	"nodekit.dev/resources"
)

// A node that tells of its battery. The client is that of the API server; this
// one goes nowhere, which is fine until Run.
func Example() {
	battery := register.SetterFunc(func(_ context.Context, n *corev1.Node) error {
		register.SetCondition(n, corev1.NodeCondition{
			Type: "BatteryLow", Status: corev1.ConditionFalse, Reason: "Charged", Message: "more than 20 % left",
		})
		return nil
	})
	cfg := register.Default()
	cfg.NodeName = "buoy-7"
	cfg.Labels = map[string]string{"example.com/sea": "north"}
	r, err := register.New(cfg, register.Parts{
		Core:    &rest.RESTClient{},
		Machine: func() (resources.Machine, error) { return resources.Machine{CPUs: 2, Memory: 1 << 30}, nil },
		Setters: []node.Ordered[register.Setter]{{Name: "battery", After: []string{register.SetPIDPressure}, Value: battery}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.SetterNames())
	fmt.Println(r.Node().Name, r.Node().Labels["example.com/sea"])
	// Output:
	// [addresses capacity allocatable daemon-endpoints declared-features machine memory-pressure disk-pressure pid-pressure battery platform ready versions]
	// buoy-7 north
}
