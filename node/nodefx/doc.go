// Package nodefx is the agent as a go.uber.org/fx graph in which every part
// can be replaced in a few lines:
//
//	agent, err := nodefx.New(
//		nodefx.Config(cfg),
//		nodefx.Replace[node.Puller](NewMyPuller),
//		nodefx.AddHook("audit", auditHook{}),
//	)
//	err = agent.Start(ctx)
//	defer agent.Stop(ctx)
//	<-agent.Ready()
//
// Vendors write no fx tags. A replacement is a constructor: its parameters
// come from the graph (the logger, a [Lifecycle], the vendor's own
// configuration given with [Supply] or [Provide]), its first result must
// implement the seam. The part it replaces is then neither built nor run.
//
// An agent stands alone until clusterfx.Join of node/clusterfx is among its
// options; this package links nothing that talks to an API server.
//
// What fx does silently is an error here: two replacements of one seam (both
// are named), an override that nothing asked for, a circle in an ordered
// group. An [Agent] is one private graph; it installs no signal handlers and
// never ends the process. It can be started once; make a new one to start
// again.
package nodefx
