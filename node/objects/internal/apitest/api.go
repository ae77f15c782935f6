// Package apitest is a small API server in memory, for the tests of
// node/objects and what is below it: objects of any kind by path, with resource
// versions, watches that begin where they are told to, and faults. It is an
// http.RoundTripper, so that it works inside of testing/synctest.
//
//	api := apitest.New()
//	api.Put(secret("default", "db"))
//	client := api.Client(corev1.SchemeGroupVersion)
package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// API is the server. Use [New]. Safe for concurrent use.
type API struct {
	mu       sync.Mutex
	version  uint64
	oldest   uint64 // watches from before are told that it is gone
	objects  map[string]object
	log      []event
	watches  map[*stream]bool
	requests []string
	// refuse answers a request instead; nil or "": the server does.
	refuse func(*http.Request) (code int, reason string)
	// noState refuses watches that begin with the state.
	noState bool
	lag     int // how many of the last events lists and new watches do not see
}

// object is one stored object: its JSON, decoded.
type object map[string]any

type event struct {
	kind    string // ADDED, MODIFIED, DELETED
	path    string
	version uint64
	object  object
}

// New makes an empty server.
func New() *API {
	return &API{version: 100, objects: map[string]object{}, watches: map[*stream]bool{}}
}

// Put stores what is at the path of its resource, such as
// "/api/v1/namespaces/default/secrets/db", and tells watches.
func (a *API) Put(at string, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := decode(value)
	o["apiVersion"], o["kind"] = kindOf(at)
	a.version++
	meta := o.meta()
	meta["name"] = path.Base(at)
	if parts := strings.Split(at, "/"); slices.Contains(parts, "namespaces") {
		meta["namespace"] = parts[slices.Index(parts, "namespaces")+1]
	}
	meta["resourceVersion"] = strconv.FormatUint(a.version, 10)
	kind := "ADDED"
	if old, ok := a.objects[at]; ok {
		kind = "MODIFIED"
		meta["uid"] = old.meta()["uid"]
	} else if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("uid-%d", a.version)
	}
	a.objects[at] = o
	a.happened(event{kind: kind, path: at, version: a.version, object: o})
}

// Delete removes what is at the path and tells watches.
func (a *API) Delete(at string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.objects[at]
	if !ok {
		return
	}
	delete(a.objects, at)
	a.version++
	gone := decode(o)
	gone.meta()["resourceVersion"] = strconv.FormatUint(a.version, 10)
	a.happened(event{kind: "DELETED", path: at, version: a.version, object: gone})
}

// Refuse answers requests by the function: an HTTP code and reason, or 0.
func (a *API) Refuse(by func(*http.Request) (code int, reason string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = by
}

// RefuseState refuses watches that ask for the state first, as a server does
// without the feature gate WatchList.
func (a *API) RefuseState() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noState = true
}

// Lag hides the last n events from lists and new watches, as a server's cache
// does that is behind. Watches see them after CatchUp.
func (a *API) Lag(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lag = n
}

// CatchUp ends the lag: open watches are sent what they did not see.
func (a *API) CatchUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lag = 0
	for w := range a.watches {
		w.catchUp(a.log)
	}
}

// EndWatches closes all watches, as the server does from time to time.
func (a *API) EndWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watches {
		w.end()
	}
	clear(a.watches)
}

// Forget makes all versions up to now too old for a watch.
func (a *API) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.oldest = a.version + 1
	a.version++
}

// Watches lists the paths that are watched now, with their field selectors.
func (a *API) Watches() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []string
	for w := range a.watches {
		list = append(list, w.path+"?"+w.name)
	}
	slices.Sort(list)
	return list
}

// Requests lists what was asked, as "GET path" or "WATCH path".
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

func (a *API) happened(e event) {
	a.log = append(a.log, e)
	for w := range a.watches {
		w.send(e)
	}
}

// RoundTrip implements [http.RoundTripper].
func (a *API) RoundTrip(req *http.Request) (*http.Response, error) {
	verb := req.Method
	if req.URL.Query().Get("watch") == "true" {
		verb = "WATCH"
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if code, reason := a.noted(verb + " " + req.URL.Path)(req); code < 0 {
		return nil, fmt.Errorf("%s", reason)
	} else if code != 0 {
		return status(req, code, reason), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case verb == "WATCH":
		return a.watch(req), nil
	case req.Method == http.MethodPost:
		return a.create(req)
	case a.objects[req.URL.Path] != nil:
		return answer(req, http.StatusOK, a.objects[req.URL.Path]), nil
	case isCollection(req.URL.Path):
		return a.list(req), nil
	}
	return status(req, http.StatusNotFound, "NotFound"), nil
}

// noted notes a request and returns what may refuse it, which may take its time.
func (a *API) noted(request string) (refuse func(*http.Request) (int, string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, request)
	if a.refuse == nil {
		return func(*http.Request) (int, string) { return 0, "" }
	}
	return a.refuse
}

func (a *API) create(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	o["apiVersion"], o["kind"] = kindOf(path.Join(req.URL.Path, "new"))
	a.version++
	meta := o.meta()
	if meta["name"] == nil {
		meta["name"] = fmt.Sprint(meta["generateName"], a.version)
	}
	meta["uid"], meta["resourceVersion"] = fmt.Sprintf("uid-%d", a.version), strconv.FormatUint(a.version, 10)
	at := path.Join(req.URL.Path, fmt.Sprint(meta["name"]))
	a.objects[at] = o
	a.happened(event{kind: "ADDED", path: at, version: a.version, object: o})
	return answer(req, http.StatusCreated, o), nil
}

// seen is what lists and new watches are shown: all but what is hidden by lag.
func (a *API) seen() (map[string]object, uint64) {
	shown := a.log[:max(0, len(a.log)-a.lag)]
	objects := map[string]object{}
	version := uint64(100)
	for _, e := range shown {
		if version = e.version; e.kind == "DELETED" {
			delete(objects, e.path)
		} else {
			objects[e.path] = e.object
		}
	}
	return objects, max(version, a.oldest)
}

func (a *API) list(req *http.Request) *http.Response {
	objects, version := a.seen()
	items := []object{}
	for _, at := range slices.Sorted(maps.Keys(objects)) {
		if within(req.URL.Path, at) && matches(req.URL.Query().Get("fieldSelector"), objects[at]) {
			items = append(items, objects[at])
		}
	}
	return answer(req, http.StatusOK, object{
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(version, 10)}, "items": items,
	})
}

func (a *API) watch(req *http.Request) *http.Response {
	from, err := strconv.ParseUint(req.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		return status(req, http.StatusBadRequest, "BadRequest")
	}
	if from != 0 && from < a.oldest {
		return status(req, http.StatusGone, "Expired")
	}
	objects, version := a.seen()
	state := req.URL.Query().Get("sendInitialEvents") == "true"
	if state && a.noState {
		return status(req, http.StatusUnprocessableEntity, "Invalid")
	}
	if state && version < from {
		return status(req, http.StatusGatewayTimeout, "Timeout")
	}
	w := newStream(req.URL.Path, req.URL.Query().Get("fieldSelector"))
	if from == 0 || state {
		w.last = version
		for _, at := range slices.Sorted(maps.Keys(objects)) {
			o := objects[at]
			w.push(event{kind: "ADDED", path: at, object: o})
		}
		if state {
			w.endState(req.URL.Path, version)
		}
	} else {
		w.last = from
		w.catchUp(a.log[:max(0, len(a.log)-a.lag)])
	}
	a.watches[w] = true
	go w.serve(req, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, w)
	})
	return &http.Response{
		StatusCode: http.StatusOK, Request: req, Body: w.reader,
		Header: http.Header{"Content-Type": []string{"application/json"}},
	}
}

// kindOf reads the path of an object.
func kindOf(at string) (apiVersion, kind string) {
	parts := strings.Split(strings.TrimPrefix(at, "/"), "/")
	apiVersion = strings.Join(parts[1:2], "/")
	if parts[0] == "apis" {
		apiVersion = strings.Join(parts[1:3], "/")
	}
	kinds := map[string]string{
		"secrets": "Secret", "configmaps": "ConfigMap", "services": "Service", "nodes": "Node",
		"serviceaccounts": "ServiceAccount", "runtimeclasses": "RuntimeClass",
		"clustertrustbundles": "ClusterTrustBundle", "podcertificaterequests": "PodCertificateRequest",
	}
	return apiVersion, kinds[parts[len(parts)-2]]
}

func decode(value any) object {
	data, err := json.Marshal(value)
	var o object
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		panic(err)
	}
	return o
}

func (o object) meta() map[string]any {
	meta, ok := o["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		o["metadata"] = meta
	}
	return meta
}

// UID is what Put gave the object at the path.
func (a *API) UID(at string) types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return types.UID(fmt.Sprint(a.objects[at].meta()["uid"]))
}
