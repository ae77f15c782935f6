// Package app is the nodectl command: what a running agent holds and what it
// decided, over the unix socket of node/server, and the replay of recorded
// decisions. It changes nothing.
//
//	func main() { os.Exit(app.Main(os.Args[1:])) }
//
// Run is the same without the process, for tests and for programs that embed
// it. The exit code is 0, or 1 after an error or when a replayed plan differs.
package app
