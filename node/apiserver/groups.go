package apiserver

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Group is an API group that is called: its version and its types, such as
// corev1.SchemeGroupVersion and corev1.AddToScheme.
type Group struct {
	Version     schema.GroupVersion
	AddToScheme func(*runtime.Scheme) error
	// ContentType is for groups that do not speak the one of Config, as custom
	// resources, which need JSON. Empty: Config's.
	ContentType string
}

// stockGroups are the groups that agents call: each weighs little, all of them
// together are a fifth of a generated clientset.
func stockGroups() []Group {
	return []Group{
		{Version: corev1.SchemeGroupVersion, AddToScheme: corev1.AddToScheme},
		{Version: coordinationv1.SchemeGroupVersion, AddToScheme: coordinationv1.AddToScheme},
		{Version: nodev1.SchemeGroupVersion, AddToScheme: nodev1.AddToScheme},
		{Version: authenticationv1.SchemeGroupVersion, AddToScheme: authenticationv1.AddToScheme},
		{Version: authorizationv1.SchemeGroupVersion, AddToScheme: authorizationv1.AddToScheme},
		{Version: certificatesv1.SchemeGroupVersion, AddToScheme: certificatesv1.AddToScheme},
		{Version: storagev1.SchemeGroupVersion, AddToScheme: storagev1.AddToScheme},
		{Version: resourcev1.SchemeGroupVersion, AddToScheme: resourcev1.AddToScheme},
	}
}

// codecs knows the types of the groups and nothing else.
func codecs(groups []Group) (serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, g := range groups {
		if err := g.AddToScheme(scheme); err != nil {
			return serializer.CodecFactory{}, fmt.Errorf("API group %s: %w", g.Version, err)
		}
	}
	return serializer.NewCodecFactory(scheme), nil
}

// groupConfig is the endpoint of one group, without credentials: those belong
// to the transport.
func groupConfig(cfg Config, g Group, codecs serializer.CodecFactory) *rest.Config {
	contentType := g.ContentType
	if contentType == "" {
		contentType = cfg.ContentType
	}
	content := rest.ContentConfig{
		GroupVersion:         &g.Version,
		NegotiatedSerializer: codecs.WithoutConversion(),
		ContentType:          contentType,
	}
	if contentType == Protobuf {
		content.AcceptContentTypes = Protobuf + "," + JSON
	}
	path := "/apis"
	if g.Version.Group == "" {
		path = "/api"
	}
	return &rest.Config{
		Host: cfg.REST.Host, APIPath: path, ContentConfig: content,
		// Only whether there is an authority matters here: it makes https
		// the default scheme of a bare host.
		TLSClientConfig: rest.TLSClientConfig{Insecure: cfg.REST.Insecure, CAFile: cfg.REST.CAFile, CAData: cfg.REST.CAData, CertFile: cfg.REST.CertFile, CertData: cfg.REST.CertData},
	}
}
