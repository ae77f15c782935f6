package wire

import (
	"nodekit.dev/node/podspec"
	"nodekit.dev/runtime/cri"
)

// Features tells what the runtime's handlers can do, as it last said: every
// reading of its health tells. While nothing is known the answer is yes: to
// reject a pod would be final, and the client asks again before it makes a
// container that needs the ability.
func Features(client *cri.Client) func(handler string) podspec.RuntimeFeatures {
	return func(handler string) podspec.RuntimeFeatures {
		f, known := client.KnownFeatures()
		if !known {
			return podspec.RuntimeFeatures{RecursiveReadOnlyMounts: true, SupplementalGroupsPolicy: true, UserNamespaces: true}
		}
		return podspec.RuntimeFeatures{
			RecursiveReadOnlyMounts:  f.Handlers[handler].RecursiveReadOnlyMounts,
			SupplementalGroupsPolicy: f.SupplementalGroupsPolicy,
			UserNamespaces:           f.Handlers[handler].UserNamespaces,
		}
	}
}
