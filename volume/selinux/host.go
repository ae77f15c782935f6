package selinux

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Host is what the host says of SELinux.
type Host struct {
	// Enabled is false where the kernel has none: nothing has a label then.
	Enabled bool
	// Files is the label for files of containers, such as
	// "system_u:object_r:container_file_t:s0".
	Files string
}

// ReadHost reads the host below root, which is "/" but for tests. A host without
// SELinux is no error.
func ReadHost(root string) (Host, error) {
	if _, err := os.Stat(filepath.Join(root, "sys/fs/selinux/enforce")); errors.Is(err, fs.ErrNotExist) {
		return Host{}, nil
	} else if err != nil {
		return Host{}, err
	}
	config := filepath.Join(root, "etc/selinux/config")
	kind, err := setting(config, "SELINUXTYPE")
	if err != nil {
		return Host{}, err
	}
	contexts := filepath.Join(root, "etc/selinux", kind, "contexts/lxc_contexts")
	files, err := setting(contexts, "file")
	if err == nil && files == "" {
		err = fmt.Errorf("%s does not say which label files of containers have", contexts)
	}
	return Host{Enabled: true, Files: files}, err
}

// setting is the value of one key in a file of lines KEY = VALUE.
func setting(file, key string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "=")
		if ok && strings.TrimSpace(name) == key {
			return strings.Trim(strings.TrimSpace(value), `"`), nil
		}
	}
	return "", lines.Err()
}
