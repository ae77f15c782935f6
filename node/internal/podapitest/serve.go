package podapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// Client speaks JSON to the server.
func (s *Server) Client() rest.Interface {
	return kubeclienttest.Client(corev1.SchemeGroupVersion, s, corev1.AddToScheme)
}

// RoundTrip implements [http.RoundTripper].
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	code, value, err := s.answer(req, body)
	if req.Method != http.MethodGet {
		s.writes = append(s.writes, Write{Verb: req.Method, Path: req.URL.Path, Body: string(body), Code: code, At: time.Now()})
	}
	switch value := value.(type) {
	case *stream:
		return &http.Response{
			StatusCode: code, Request: req, Body: value.reader, Header: http.Header{"Content-Type": []string{"application/json"}},
		}, nil
	case nil:
		return nil, err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: req, Body: io.NopCloser(bytes.NewReader(data)),
		Header: http.Header{"Content-Type": []string{"application/json"}},
	}, nil
}

func (s *Server) answer(req *http.Request, body []byte) (int, any, error) {
	if s.refuse != nil {
		switch code, reason := s.refuse(req); {
		case code < 0:
			return 0, nil, errors.New(reason)
		case code > 0:
			code, status := failure(code, reason)
			return code, status, nil
		}
	}
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/api/v1/"), "/")
	switch {
	case parts[0] == "nodes" && len(parts) == 2:
		if node := s.nodes[parts[1]]; node != nil {
			return http.StatusOK, node, nil
		}
		code, status := failure(http.StatusNotFound, "NotFound")
		return code, status, nil
	case parts[0] == "pods" && req.URL.Query().Get("watch") == "true":
		code, value := s.watch(req)
		return code, value, nil
	case parts[0] == "pods":
		return http.StatusOK, s.list(req), nil
	case parts[0] == "namespaces" && len(parts) == 3 && req.Method == http.MethodPost:
		code, value := s.post(body)
		return code, value, nil
	case parts[0] == "namespaces" && len(parts) >= 4:
		code, value := s.onPod(req.Method, parts[1]+"/"+parts[3], body)
		return code, value, nil
	}
	return 0, nil, fmt.Errorf("podapitest: %s %s is not served", req.Method, req.URL.Path)
}

func failure(code int, reason string) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReason(reason), Code: int32(code), Message: reason,
	}
}

func (s *Server) list(req *http.Request) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.version, 10)}, Items: []corev1.Pod{}}
	for _, at := range slices.Sorted(maps.Keys(s.pods)) {
		if selected(req, s.pods[at]) {
			list.Items = append(list.Items, *s.pods[at])
		}
	}
	return list
}

func selected(req *http.Request, pod *corev1.Pod) bool {
	name, ok := strings.CutPrefix(req.URL.Query().Get("fieldSelector"), "spec.nodeName=")
	return !ok || pod.Spec.NodeName == name
}

func (s *Server) post(body []byte) (int, any) {
	var pod corev1.Pod
	if err := json.Unmarshal(body, &pod); err != nil {
		return failure(http.StatusBadRequest, err.Error())
	}
	pod.UID, pod.Status = "", corev1.PodStatus{}
	made, err := s.create(&pod)
	if err != nil {
		return failure(http.StatusConflict, "AlreadyExists")
	}
	return http.StatusCreated, made
}

func (s *Server) onPod(method, at string, body []byte) (int, any) {
	pod := s.pods[at]
	if pod == nil {
		return failure(http.StatusNotFound, "NotFound")
	}
	switch method {
	case http.MethodGet:
		return http.StatusOK, pod
	case http.MethodPatch:
		return s.patch(at, body)
	case http.MethodDelete:
		var opts metav1.DeleteOptions
		if err := json.Unmarshal(body, &opts); err != nil {
			return failure(http.StatusBadRequest, err.Error())
		}
		if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
			return failure(http.StatusConflict, "Conflict")
		}
		s.delete(at, *opts.GracePeriodSeconds)
		return http.StatusOK, pod
	}
	return failure(http.StatusMethodNotAllowed, "MethodNotAllowed")
}

func (s *Server) patch(at string, body []byte) (int, any) {
	var patch struct {
		Metadata struct{ UID, ResourceVersion string }
		Status   map[string]any
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return failure(http.StatusBadRequest, err.Error())
	}
	pod := s.pods[at]
	if patch.Metadata.UID != string(pod.UID) || (patch.Metadata.ResourceVersion != "" && patch.Metadata.ResourceVersion != pod.ResourceVersion) {
		return failure(http.StatusConflict, "Conflict")
	}
	for _, field := range s.drops {
		delete(patch.Status, field)
	}
	status, err := applied(pod.Status, patch.Status)
	if err != nil {
		return failure(http.StatusUnprocessableEntity, err.Error())
	}
	if reflect.DeepEqual(status, pod.Status) { // nothing changes: no new version, no event
		return http.StatusOK, pod
	}
	return http.StatusOK, s.update(at, func(pod *corev1.Pod) { pod.Status = status })
}
