package follow

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client returns a client of one group, such as corev1.SchemeGroupVersion: core,
// coordination, certificates or storage. It has no limit of its own on requests.
func Client(kubeconfig string, group schema.GroupVersion) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", kubeconfig, err)
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, certificatesv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config.GroupVersion = &group
	config.APIPath = "/apis"
	if group.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1
	return rest.RESTClientFor(config)
}
