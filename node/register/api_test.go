package register

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// api is an API server in memory that knows one node and one lease. It is an
// http.RoundTripper, so that it runs in a synctest bubble.
type api struct {
	t testing.TB

	mu      sync.Mutex
	node    *corev1.Node
	lease   *coordinationv1.Lease
	version int
	uids    int
	calls   []string // such as "PATCH nodes/n1/status"
	patches []string
	fail    func(call string) error // nil: every call works
	lose    func(call string) error // the same, of calls that take effect
}

func newAPI(t testing.TB) *api { return &api{t: t, version: 100} }

func (a *api) core() rest.Interface {
	return kubeclienttest.Client(corev1.SchemeGroupVersion, a, corev1.AddToScheme)
}

func (a *api) coordination() rest.Interface {
	return kubeclienttest.Client(coordinationv1.SchemeGroupVersion, a, coordinationv1.AddToScheme)
}

func (a *api) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// count is how many calls were made that begin so.
func (a *api) count(prefix string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

func (a *api) now() *corev1.Node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node.DeepCopy()
}

func (a *api) leaseNow() *coordinationv1.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease.DeepCopy()
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, "/api/v1/"), "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/")
	call := req.Method + " " + path
	a.calls = append(a.calls, call)
	if a.fail != nil {
		if err := a.fail(call); err != nil {
			if _, ok := err.(apierrors.APIStatus); !ok {
				return nil, err
			}
			return a.answer(req, nil, err), nil
		}
	}
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	var out any
	var err error
	if strings.HasPrefix(path, "nodes") {
		out, err = a.nodes(req.Method, path, body)
	} else {
		out, err = a.leases(req.Method, body)
	}
	if a.lose != nil {
		if lost := a.lose(call); lost != nil {
			return nil, lost
		}
	}
	return a.answer(req, out, err), nil
}

func (a *api) answer(req *http.Request, out any, err error) *http.Response {
	code := http.StatusOK
	if err != nil {
		status := err.(apierrors.APIStatus).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		out, code = status, int(status.Code)
	}
	text, err := json.Marshal(out)
	if err != nil {
		a.t.Error(err)
	}
	return &http.Response{
		StatusCode: code, Request: req, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}
}

func (a *api) wrote(meta *metav1.ObjectMeta) {
	a.version++
	meta.ResourceVersion = strconv.Itoa(a.version)
	if meta.UID == "" {
		a.uids++
		meta.UID = types.UID(fmt.Sprintf("uid-%d", a.uids))
	}
}

func (a *api) nodes(method, path string, body []byte) (any, error) {
	nodes := schema.GroupResource{Resource: "nodes"}
	switch {
	case method == http.MethodPost && a.node != nil:
		return nil, apierrors.NewAlreadyExists(nodes, a.node.Name)
	case method == http.MethodPost:
		a.node = &corev1.Node{}
		a.decode(body, a.node)
		a.node.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		a.wrote(&a.node.ObjectMeta)
	case a.node == nil:
		return nil, apierrors.NewNotFound(nodes, "n1")
	case method == http.MethodPatch && strings.HasSuffix(path, "/status"):
		a.patches = append(a.patches, string(body))
		a.node = a.applied(a.node, body)
		a.wrote(&a.node.ObjectMeta)
	case method != http.MethodGet:
		a.t.Errorf("%s %s is not what a node does", method, path)
	}
	return a.node, nil
}

func (a *api) leases(method string, body []byte) (any, error) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	switch {
	case method == http.MethodPost && a.lease == nil:
		a.lease = &coordinationv1.Lease{}
		a.decode(body, a.lease)
		a.lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
		a.wrote(&a.lease.ObjectMeta)
	case a.lease == nil:
		return nil, apierrors.NewNotFound(leases, "n1")
	case method == http.MethodPut:
		now := &coordinationv1.Lease{}
		a.decode(body, now)
		if now.ResourceVersion != a.lease.ResourceVersion {
			return nil, apierrors.NewConflict(leases, "n1", fmt.Errorf("version %s is not %s", now.ResourceVersion, a.lease.ResourceVersion))
		}
		a.lease = now
		a.lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
		a.wrote(&a.lease.ObjectMeta)
	}
	return a.lease, nil
}

func (a *api) decode(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		a.t.Errorf("%v: %s", err, text)
	}
}

// applied does what the API server does with the patches of this package:
// test/cluster holds that the real one agrees.
func (a *api) applied(n *corev1.Node, patch []byte) *corev1.Node {
	text, err := json.Marshal(n)
	if err != nil {
		a.t.Error(err)
	}
	var have, change map[string]any
	a.decode(text, &have)
	a.decode(patch, &change)
	if _, ok := change["spec"]; ok {
		a.t.Errorf("a patch of the spec: %s", patch)
	}
	out := &corev1.Node{}
	text, err = json.Marshal(merged(have, change))
	if err != nil {
		a.t.Error(err)
	}
	a.decode(text, out)
	return out
}

func merged(have, change map[string]any) map[string]any {
	for key, value := range change {
		inner, isMap := value.(map[string]any)
		list, isList := value.([]any)
		switch {
		case value == nil:
			delete(have, key)
		case isMap:
			have[key] = merged(object(have[key]), inner)
		case isList && key == "conditions":
			have[key] = byType(have[key], list)
		case isList && key == "addresses" && have[key] != nil:
			if last := object(list[len(list)-1]); last["$patch"] != "replace" {
				panic("addresses would be merged by type")
			}
			have[key] = list[:len(list)-1]
		default:
			have[key] = value
		}
	}
	return have
}

func byType(have any, change []any) []any {
	list, _ := have.([]any)
	for _, c := range change {
		kind := object(c)["type"]
		var rest []any
		found := false
		for _, old := range list {
			switch {
			case object(old)["type"] != kind:
				rest = append(rest, old)
			case object(c)["$patch"] != "delete":
				rest, found = append(rest, merged(object(old), object(c))), true
			default:
				found = true
			}
		}
		if !found {
			rest = append(rest, c)
		}
		list = rest
	}
	return list
}
