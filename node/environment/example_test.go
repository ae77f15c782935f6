package environment_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/environment"
	"nodekit.dev/node/podactor"
)

// appliance has one ConfigMap built in, and no services.
type appliance struct{}

// noSuch is an error that says so.
type noSuch struct{ name string }

func (e noSuch) Error() string  { return e.name + " not found" }
func (e noSuch) NotFound() bool { return true }

func (appliance) ConfigMap(_ context.Context, _ types.UID, _, name string) (*corev1.ConfigMap, error) {
	if name != "site" {
		return nil, noSuch{name}
	}
	return &corev1.ConfigMap{Data: map[string]string{"place": "roof"}}, nil
}

func (appliance) Secret(_ context.Context, _ types.UID, _, name string) (*corev1.Secret, error) {
	return nil, noSuch{name}
}

func (appliance) Services(context.Context, types.UID, string) ([]*corev1.Service, error) {
	return nil, nil
}

func Example() {
	env, err := environment.New(appliance{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "site"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "key"}}},
	}}}}}
	found, err := env.Environment(context.Background(), podactor.EnvironmentRequest{Pod: pod, Container: "web"})
	fmt.Println(found.ConfigMaps["site"].Data, len(found.Secrets), err)
	// Output: map[place:roof] 0 <nil>
}
