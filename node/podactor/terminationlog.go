package podactor

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// makeTerminationLog makes the empty file that a container writes its
// termination message to, where the stock kubelet has it:
// pods/UID/containers/NAME/<8 hex digits>. The digits follow from the attempt,
// so that a start that is tried again leaves no second file.
func makeTerminationLog(rootDir, uid, container string, attempt uint32) (string, error) {
	dir := filepath.Join(rootDir, "pods", uid, "containers", container)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%s/%d", uid, container, attempt) // a hash never fails
	path := filepath.Join(dir, fmt.Sprintf("%08x", hash.Sum32()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}
	// Whatever the umask, and whoever the container runs as.
	if err := file.Chmod(0o666); err != nil {
		_ = file.Close() // the first error tells more
		return "", err
	}
	return path, file.Close()
}
