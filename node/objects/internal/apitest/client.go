package apitest

import (
	"net/http"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Client speaks JSON to the server, for one group and version.
func (a *API) Client(gv schema.GroupVersion) rest.Interface { return NewClient(gv, a) }

// NewClient is Client through any transport.
func NewClient(gv schema.GroupVersion, through http.RoundTripper) rest.Interface {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nodev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	path := "/apis"
	if gv.Group == "" {
		path = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(&rest.Config{
		Host: "http://api.test", APIPath: path, QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion: &gv, ContentType: runtime.ContentTypeJSON,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	}, &http.Client{Transport: through})
	if err != nil {
		panic(err)
	}
	return client
}
