package follow_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/objects/follow"
	"nodekit.dev/node/objects/internal/apitest"
)

// A Secret is read once and then followed by a watch.
func ExampleOne() {
	api := apitest.New() // stands for an API server
	api.Put("/api/v1/namespaces/shop/secrets/db", &corev1.Secret{Data: map[string][]byte{"user": []byte("root")}})

	one := follow.NewOne(follow.Options[*corev1.Secret]{
		Source: follow.Source{
			Client: api.Client(corev1.SchemeGroupVersion),
			Kind:   "secret", Resource: "secrets", Namespace: "shop", Name: "db",
		},
		New: func() *corev1.Secret { return &corev1.Secret{} },
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go one.Run(ctx)

	secret, err := one.Get(ctx)
	fmt.Println(string(secret.Data["user"]), err)
	// Output: root <nil>
}
