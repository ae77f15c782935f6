package nodefx

import (
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/cri"
)

// Member is what the agent talks to the API server with; nil where it stands
// alone.
func (a *Agent) Member() *wire.Member { return a.member }

// CRI is the client of the container runtime; nil where a vendor's Engine took
// its place.
func (a *Agent) CRI() *cri.Client { return a.facts.Client }

// Users are what AddAuthenticator and AddAuthorizer added.
func (a *Agent) Users() Users { return a.users }
