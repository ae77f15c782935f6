package apicache_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/node/objects/internal/apitest"
)

func Example() {
	api := apitest.New() // a node would use a lane of node/apiserver
	api.Put("/api/v1/namespaces/shop/secrets/db", &corev1.Secret{Data: map[string][]byte{"user": []byte("root")}})
	cache, err := apicache.New(apicache.Config{NodeName: "edge-1"}, apicache.Clients{Core: api.Client(corev1.SchemeGroupVersion)}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	group := tasks.New(context.Background())
	group.Go("cache", cache.Run)
	secret, err := cache.Secret(context.Background(), "pod-uid", "shop", "db")
	if err == nil {
		fmt.Println(string(secret.Data["user"]))
	}
	cache.Release("pod-uid")
	group.Stop()
	fmt.Println(err, group.Wait() == nil)
	// Output:
	// root
	// <nil> true
}
