// Package node is the agent without its wiring: it takes pods from sources,
// gives each pod UID an actor (node/podactor) that runs the pod machine
// (node/lifecycle), and publishes what the actors say.
//
// [New] takes every part through an interface ([Parts]); node/wire and
// node/nodefx put the defaults together.
package node
