// Package scenarios tests cmd/kubelet as a member of a real cluster: what users
// run there (TestWorkloads), what kubectl does (TestKubectl), how a node joins
// (TestBootstrap), what may be killed (TestKilled) or be away (TestAway), a
// connection that dies silently (TestCut), and who may ask it what
// (TestSecurity).
//
// It asserts through the API server, as users and controllers see it, and looks
// at the runtime only for what is left over. NODEKIT_SOAK=1 runs more rounds
// and longer outages. NODEKIT_AGENT names another kubelet to test, such as the
// stock one, which is how the tests themselves are tested. It has only tests.
package scenarios
