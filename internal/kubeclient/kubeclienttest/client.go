// Package kubeclienttest makes REST clients for tests whose API server is an
// http.RoundTripper in memory, so that they run in a synctest bubble.
//
//	core := kubeclienttest.Client(corev1.SchemeGroupVersion, api, corev1.AddToScheme)
package kubeclienttest

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Client speaks JSON through the transport, for one group and version, with the
// types that add knows. It waits for no limit.
func Client(gv schema.GroupVersion, through http.RoundTripper, add ...func(*runtime.Scheme) error) rest.Interface {
	scheme := runtime.NewScheme()
	for _, a := range add {
		if err := a(scheme); err != nil {
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
