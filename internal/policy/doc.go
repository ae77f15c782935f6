// Package policy holds the rules of the house as tests: who may import whom,
// what a public package may drag along, documentation, and what code must not
// do (package-level state, init, exits, sleeps). It has no code to import.
//
// Run it with `make policy`. A failure says which rule, where, and what to do
// instead. Where a rule does not fit, testdata/allowed.txt takes the exception
// with its reason; an exception that nothing needs any more fails as well.
//
//	go test ./internal/policy -run TestBudgets -update   # after a look at what grew
//	make api                                             # writes docs/api.txt anew; read its diff
package policy
