package nodefx

import (
	"nodekit.dev/runtime/cri"
)

// CRI is the client of the container runtime; nil where a vendor's Engine took
// its place.
func (a *Agent) CRI() *cri.Client { return a.facts.Client }

// Users are what AddAuthenticator and AddAuthorizer added.
func (a *Agent) Users() Users { return a.users }
