package podactor

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// TerminationLogPath is the file that a container writes its termination
// message to, where the stock kubelet has it:
// pods/UID/containers/NAME/<8 hex digits>. The digits follow from the attempt,
// so that a start that is tried again leaves no second file.
func TerminationLogPath(rootDir, uid, container string, attempt uint32) string {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%s/%d", uid, container, attempt) // a hash never fails
	return filepath.Join(rootDir, "pods", uid, "containers", container, fmt.Sprintf("%08x", hash.Sum32()))
}

// terminationLog makes the file for the next attempt. Without it (no space, a
// read-only disk) the container starts all the same: last words that nobody can
// read are a smaller loss than a pod that does not run.
func (j *job) terminationLog(spec *corev1.Container) string {
	if spec.TerminationMessagePath == "" {
		return ""
	}
	path := TerminationLogPath(j.cfg.RootDir, j.uid, spec.Name, j.action.Attempt)
	if err := makeTerminationLog(path); err != nil {
		j.log.Warn("no file for a termination message; the container starts without it", "container", spec.Name, "err", err)
		return ""
	}
	return path
}

// makeTerminationLog makes the empty file.
func makeTerminationLog(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	// Whatever the umask, and whoever the container runs as.
	if err := file.Chmod(0o666); err != nil {
		_ = file.Close() // the first error tells more
		return err
	}
	return file.Close()
}
