package apitest

import (
	"net/http"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// Client speaks JSON to the server, for one group and version.
func (a *API) Client(gv schema.GroupVersion) rest.Interface { return NewClient(gv, a) }

// NewClient is Client through any transport.
func NewClient(gv schema.GroupVersion, through http.RoundTripper) rest.Interface {
	return kubeclienttest.Client(gv, through, corev1.AddToScheme, nodev1.AddToScheme, certificatesv1.AddToScheme)
}
