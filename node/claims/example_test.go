package claims_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/node/claims"
)

// What the registration tells as node.status.volumesInUse.
func ExampleClaims_InUse() {
	c, err := claims.New(claims.Config{NodeName: "n1"}, claims.Parts{
		Core: &rest.RESTClient{},
		Node: func(context.Context) (*corev1.Node, error) { return &corev1.Node{}, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.InUse())
	// Output: [] true
}
