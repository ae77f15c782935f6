package objects_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node/objects"
)

// A node without an API server gets its objects from Go.
func ExampleStore() {
	store := objects.NewStore()
	err := store.Set([]*corev1.Secret{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Data:       map[string][]byte{"user": []byte("root")},
	}}, nil)
	fmt.Println(err)

	ctx := context.Background()
	secret, _ := store.Secret(ctx, "pod-uid", "shop", "db")
	fmt.Println(string(secret.Data["user"]))
	_, err = store.ConfigMap(ctx, "pod-uid", "shop", "conf")
	fmt.Println(err)
	// Output:
	// <nil>
	// root
	// configmap "conf" not found
}
