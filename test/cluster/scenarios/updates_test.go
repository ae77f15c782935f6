package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/test/integration/testbed"
)

// volumeUpdates: what changes in a ConfigMap, a Secret or a pod's labels is in
// the container's files two seconds later at the latest.
func volumeUpdates(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {value: "0"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {value: "0"}
---
apiVersion: v1
kind: Pod
metadata: {name: files, labels: {value: "0"}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: WEB
    args: [-root=/files]
    readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: config, mountPath: /files/config}, {name: secret, mountPath: /files/secret}, {name: down, mountPath: /files/down}]
  volumes:
  - {name: config, configMap: {name: settings}}
  - {name: secret, secret: {secretName: keys}}
  - {name: down, downwardAPI: {items: [{path: value, fieldRef: {fieldPath: "metadata.labels['value']"}}]}}
`)
	p := e.untilPod(t, patience, ns, "files", ready)
	kinds := []struct{ folder, resource, name, patch string }{
		{"config", "configmaps", "settings", `{"data":{"value":%q}}`},
		{"secret", "secrets", "keys", `{"stringData":{"value":%q}}`},
		{"down", "pods", "files", `{"metadata":{"labels":{"value":%q}}}`},
	}
	for round := 1; round <= 3; round++ {
		for _, kind := range kinds {
			value := fmt.Sprint(round)
			err := e.core.Patch(types.StrategicMergePatchType).Namespace(ns).Resource(kind.resource).Name(kind.name).
				Body(fmt.Appendf(nil, kind.patch, value)).Do(t.Context()).Error()
			if err != nil {
				t.Fatal(err)
			}
			changed := time.Now()
			e.served(t, "http://"+p.Status.PodIP+":8080/"+kind.folder+"/value", value)
			took := time.Since(changed)
			t.Logf("%s: %v", kind.resource, took.Round(time.Millisecond))
			if took > 2*time.Second {
				t.Errorf("a change in %s took %v to reach the container", kind.resource, took)
			}
		}
	}
}

// served waits until a page has that text.
func (e *env) served(t *testing.T, url, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := testbed.Eventually(ctx, 10*time.Millisecond, func(ctx context.Context) error {
		got, err := testbed.Fetch(ctx, url)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %q, want %q", url, got, want)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, e.report())
	}
}
