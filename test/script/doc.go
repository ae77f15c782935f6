// Package script runs the whole kubelet and nodectl, as processes, against the
// strict in-memory runtime on a unix socket. Each testdata/*.txtar is one story:
// commands with what they print beside them.
//
//	go test ./test/script                   run all
//	go test ./test/script -run Script/edit  run one
//	go test ./test/script -update           write what is printed into the scripts
//
// Beside the commands of testscript there are:
//
//	kubelet FLAGS...            the command as it is
//	agent FLAGS... &agent&      the kubelet with flags and a configuration that fit the test
//	[!] await REGEXP nodectl ARGS...
//	                            run nodectl until its output matches (or does not)
//	world behave NAME [run=D] [exit=N]
//	                            what containers of that name do
//	world calls METHOD N        fail unless the runtime got N calls of that method
//	world empty                 wait until the runtime holds no pod
//	world down, world up        stop the runtime; bring it back
//
// What differs from run to run (ages, times, IDs) is blotted out in the output
// of await and of "blot FILE". There are no sleeps: await and world wait for
// what they name, at most 20 s.
package script
