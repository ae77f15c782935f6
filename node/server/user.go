package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// The names and groups that the API server knows too.
const (
	UserAnonymous        = "system:anonymous"
	GroupUnauthenticated = "system:unauthenticated"
	GroupAuthenticated   = "system:authenticated"
)

// User is who a request comes from.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Authenticator knows some kind of credentials.
type Authenticator interface {
	// Authenticate tells who sent the request. False without an error: there
	// are no credentials of this kind. An error: there are, but they do not
	// hold, or nobody could tell. The next authenticator is then asked as well,
	// but the request is no longer an anonymous one. It may block until the
	// request's context ends, and is called concurrently.
	Authenticate(r *http.Request) (User, bool, error)
}

// Attributes are what a request wants to do: a verb on a subresource of the
// node.
type Attributes struct {
	User        User
	Verb        string // "get", "create", "update", "patch", "delete"; empty for other methods
	Node        string
	Subresource string // such as "proxy"
	Path        string // of the request
}

// Decision is the word of an authorizer.
type Decision string

// The decisions. What nobody allows is denied.
const (
	Allow     Decision = "Allow"
	Deny      Decision = "Deny"
	NoOpinion Decision = "NoOpinion"
)

// Authorizer decides what a user may do.
type Authorizer interface {
	// Authorize says Allow or Deny, which is the last word on these attributes,
	// or NoOpinion, which leaves it to the next. An error ends the request with
	// an internal error. It may block until ctx ends, and is called
	// concurrently.
	Authorize(ctx context.Context, a Attributes) (Decision, error)
}

// verbOf is the API's verb for a method.
func verbOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// SubresourcesOf is what the stock kubelet asks for a path: subresources of
// the node, of which any one opens it.
func SubresourcesOf(path string) []string {
	for _, rule := range []struct {
		root string
		subs []string
	}{
		{"/allocatedPods", []string{"pods", "proxy"}},
		{"/pods", []string{"pods", "proxy"}},
		{"/runningpods", []string{"pods", "proxy"}},
		{"/healthz", []string{"healthz", "proxy"}},
		{"/configz", []string{"configz", "proxy"}},
		{"/flagz", []string{"configz"}},
		{"/statusz", []string{"statusz"}},
		{"/stats", []string{"stats"}},
		{"/metrics", []string{"metrics"}},
		{"/logs", []string{"log"}},
		{"/checkpoint", []string{"checkpoint"}},
	} {
		if path == rule.root || strings.HasPrefix(path, rule.root+"/") {
			return rule.subs
		}
	}
	return []string{"proxy"}
}

// asAuthenticated adds the group of all who are known.
func asAuthenticated(u User) User {
	if u.Name == UserAnonymous || slices.Contains(u.Groups, GroupAuthenticated) || slices.Contains(u.Groups, GroupUnauthenticated) {
		return u
	}
	u.Groups = append(slices.Clone(u.Groups), GroupAuthenticated)
	return u
}

func anonymous() User { return User{Name: UserAnonymous, Groups: []string{GroupUnauthenticated}} }
