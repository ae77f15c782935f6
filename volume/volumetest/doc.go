// Package volumetest holds the contract that a volume plugin must keep, as tests
// that a vendor runs on its own.
//
//	func TestMain(m *testing.M) { os.Exit(volumetest.Main(m)) } // a mount namespace of its own
//
//	func TestContract(t *testing.T) {
//		volumetest.Suite(t, func(t *testing.T) volumetest.Subject {
//			return volumetest.Subject{Plugin: myPlugin{}, Source: func(n int) volume.Source { ... }}
//		})
//	}
//
// Rules:
//
//   - The suite makes what crashes, restarts and reboots leave behind, and calls
//     the plugin as the manager of package volume would. It needs no cluster.
//   - It mounts things: run it as root, with [Main], which keeps the mounts from
//     the rest of the machine.
//   - The subject is made anew for each case.
package volumetest
