package apicache

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/objects/follow"
)

// requestTime bounds the calls that make one request.
const requestTime = 30 * time.Second

// followRequests follows the PodCertificateRequests of this node, as the Node
// authorizer allows it.
func (c *Cache) followRequests() *follow.Many[*certificatesv1.PodCertificateRequest] {
	many := follow.NewMany(follow.ManyOptions[*certificatesv1.PodCertificateRequest]{
		Source: follow.Source{
			Client: c.clients.Certificates, Kind: "podcertificaterequest", Resource: "podcertificaterequests",
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", c.cfg.NodeName).String(),
		},
		NewList: func() follow.List { return &certificatesv1.PodCertificateRequestList{} },
		Items: func(list follow.List) []*certificatesv1.PodCertificateRequest {
			return pointers(list.(*certificatesv1.PodCertificateRequestList).Items)
		},
		Trim:    func(r *certificatesv1.PodCertificateRequest) { trim(r) },
		Changed: c.podCerts.stir,
		Log:     c.log,
	})
	c.runner.start("objects-podcertificaterequests", many.Run)
	return many
}

// request makes a key and asks for a certificate for it.
func (p *podCerts) request(
	ctx context.Context, pod *corev1.Pod, what *corev1.PodCertificateProjection,
) (*certificatesv1.PodCertificateRequest, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	account := &corev1.ServiceAccount{}
	err := p.cache.clients.Core.Get().Namespace(pod.Namespace).Resource("serviceaccounts").Name(pod.Spec.ServiceAccountName).Do(ctx).Into(account)
	if err != nil {
		return nil, nil, fmt.Errorf("while fetching service account: %w", err)
	}
	node, err := p.cache.Node(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("while getting node object: %w", err)
	}
	key, proof, err := keyAndProof(what.KeyType)
	if err != nil {
		return nil, nil, err
	}
	request := requestFor(pod, what, node, account.UID)
	request.Spec.StubPKCS10Request = proof
	made := &certificatesv1.PodCertificateRequest{}
	err = p.cache.clients.Certificates.Post().Namespace(pod.Namespace).Resource("podcertificaterequests").Body(request).Do(ctx).Into(made)
	if err != nil {
		return nil, nil, fmt.Errorf("while creating PodCertificateRequest: %w", err)
	}
	return made, key, nil
}

// requestFor is a request without its proof.
func requestFor(
	pod *corev1.Pod, what *corev1.PodCertificateProjection, node *corev1.Node, account types.UID,
) *certificatesv1.PodCertificateRequest {
	return &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: what.SignerName,
			PodName:    pod.Name, PodUID: pod.UID,
			ServiceAccountName: pod.Spec.ServiceAccountName, ServiceAccountUID: account,
			NodeName: types.NodeName(node.Name), NodeUID: node.UID,
			MaxExpirationSeconds:      what.MaxExpirationSeconds,
			UnverifiedUserAnnotations: what.UserAnnotations,
		},
	}
}
