// Package runtimetest is for tests of what drives a container runtime: World,
// a strict runtime in memory, and Suite, the contract that a World and a real
// runtime both keep.
//
// A World fails the test on what a sound agent never does (the Rule constants),
// naming pod and container. Its methods are the calls of the CRI in terms of
// package runtime, for tests inside a synctest bubble:
//
//	w := runtimetest.NewWorld(t, runtimetest.Config{})
//	w.Script("app", runtimetest.Behaviour{RunFor: time.Minute, ExitCode: 3})
//	w.Fault(runtimetest.Fault{Kind: runtimetest.Hang, Method: runtimetest.MethodRunSandbox, Nth: 2})
//	... run the agent over w.RunSandbox, w.CreateContainer, w.LookPod, w.Hints ...
//	w.CheckEmpty()
//
// Serve puts the CRI itself over it, on a unix socket, for clients and whole
// agents:
//
//	server := w.Serve(t, t.TempDir())
//	agent(server.Endpoint())
//	w.Restart()
//
// Rules for callers: a World reports through testing.TB, so no call may come
// after the test ended. What containers do is set before they are created.
// Socket I/O does not count as blocked in a synctest bubble: use the methods,
// not Serve, there. Suite's subjects use images whose "sh" is a busybox or
// better.
package runtimetest
