// Package volumes tests volumes as a crash leaves them: a process that mounts and
// unmounts them is killed at any moment, and whoever comes next finds, finishes or
// undoes what it left.
//
//	cd test/integration && go test ./volumes
//
// It needs root and no runtime. NODEKIT_SOAK=1 kills 100 times instead of 5.
package volumes
