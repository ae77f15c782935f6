package agent

import (
	"testing"

	"nodekit.dev/test/integration/testbed"
)

// lifeCase is one thing that a pod's life must show on a real runtime.
type lifeCase struct {
	name string
	// smoke cases run on the older containerd too in make test.
	smoke bool
	run   func(t *testing.T, e *env)
}

func lifeCases() []lifeCase {
	return []lifeCase{
		{"Serves", true, serves},
		{"HostNetworkAndPort", false, hostNetworkAndPort},
		{"ExitCodes", true, exitCodes},
		{"OnFailureUntilItSucceeds", false, onFailure},
		{"RestartBackOff", false, restartBackOff},
		{"RestartRules", false, restartRules},
		{"TerminationMessage", false, terminationMessage},
		{"OutOfMemory", false, outOfMemory},
		{"ActiveDeadline", false, activeDeadline},
		{"SandboxCrash", true, sandboxCrash},
		{"OrderOfInitAndSidecars", true, orderOfInitAndSidecars},
		{"InitFails", false, initFails},
		{"PostStart", false, postStart},
		{"PostStartFails", false, postStartFails},
		{"PreStopThenTerm", true, preStopThenTerm},
		{"GraceThenKill", true, graceThenKill},
		{"PreStopWithinGrace", false, preStopWithinGrace},
		{"Readiness", true, readiness},
		{"ReadinessByCommand", true, readinessByCommand},
		{"ExecChecks", true, execChecks},
		{"LivenessRestarts", false, livenessRestarts},
		{"StartupProtects", false, startupProtects},
		{"ImageIfNotPresent", false, imageIfNotPresent},
		{"ImageAlways", false, imageAlways},
		{"ImageNever", false, imageNever},
		{"ImageMissingThenThere", false, imageMissingThenThere},
		{"ImageNameInvalid", false, imageNameInvalid},
		{"StaticChange", true, staticChange},
		{"StaticRapidChange", false, staticRapidChange},
		{"StaticAwayAndBack", false, staticAwayAndBack},
		{"StaticBadManifests", false, staticBadManifests},
		{"StaticFixedUID", false, staticFixedUID},
		{"EmptyDir", true, emptyDir},
		{"HostPath", false, hostPath},
		{"ImageVolume", true, imageVolume},
		{"MemoryVolume", false, memoryVolume},
		{"HostPathSpecial", false, hostPathSpecial},
		{"HostPathMissing", false, hostPathMissing},
		{"MountPropagation", false, mountPropagation},
		{"RecursiveReadOnly", false, recursiveReadOnly},
		{"SubPath", false, subPath},
		{"SubPathEscape", false, subPathEscape},
		{"Logs", true, logs},
		{"Confinement", true, confinement},
		{"Refused", false, refused},
	}
}

func TestLife(t *testing.T) {
	testbed.Require(t)
	for _, version := range []string{testbed.V2, testbed.V16} {
		t.Run("containerd "+version, func(t *testing.T) {
			e := newEnv(t, version)
			// In a group of their own, so that the checks of newEnv come after
			// the last of them.
			t.Run("cases", func(t *testing.T) {
				for _, c := range lifeCases() {
					if version == testbed.V16 && !c.smoke && !soaking {
						continue
					}
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						c.run(t, e)
					})
				}
			})
		})
	}
}
