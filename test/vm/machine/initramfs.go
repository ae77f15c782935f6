package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// initScript is the first program of the guest. {MODULES} are the files to load,
// in order. The second disk is a tar, without a file system.
const initScript = `#!/bin/busybox sh
fail() { echo "initramfs: can not $1"; busybox poweroff -f; }
busybox mkdir -p /proc /sys /dev /newroot
busybox mount -t devtmpfs devtmpfs /dev
for m in {MODULES}; do busybox insmod /modules/$m || fail "load $m"; done
busybox mount -t ext4 /dev/vda /newroot || fail "mount the root"
busybox tar -x -f /dev/vdb -C /newroot || fail "unpack the files of this run"
busybox mount --move /dev /newroot/dev
exec busybox switch_root /newroot /sbin/init
fail "start systemd"
`

// makeInitramfs writes a cpio with busybox, the modules and the script.
func makeInitramfs(ctx context.Context, path, root, version string) error {
	tree := path + ".tree"
	defer os.RemoveAll(tree)
	if err := errors.Join(os.MkdirAll(filepath.Join(tree, "modules"), 0o755), os.MkdirAll(filepath.Join(tree, "bin"), 0o755)); err != nil {
		return err
	}
	from := filepath.Join(root, "lib", "modules", version)
	text, err := os.ReadFile(filepath.Join(from, "modules.dep"))
	if err != nil {
		return err
	}
	modules, err := loadOrder(string(text), strings.Fields(loaded))
	if err != nil {
		return err
	}
	var names []string
	for _, module := range modules {
		names = append(names, filepath.Base(module))
		if err := copyFile(filepath.Join(tree, "modules", filepath.Base(module)), filepath.Join(from, module), 0o644); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(tree, "bin", "busybox"), filepath.Join(root, "bin", "busybox"), 0o755); err != nil {
		return err
	}
	script := strings.ReplaceAll(initScript, "{MODULES}", strings.Join(names, " "))
	if err := os.WriteFile(filepath.Join(tree, "init"), []byte(script), 0o755); err != nil {
		return err
	}
	return archive(ctx, path, tree)
}

// archive packs a tree in the format that the kernel unpacks.
func archive(ctx context.Context, path, tree string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	var names []string
	err = filepath.WalkDir(tree, func(name string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(tree, name) // it is below
		names = append(names, rel)
		return err
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "cpio", "--quiet", "-o", "-H", "newc")
	var stderr strings.Builder
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = tree, strings.NewReader(strings.Join(names, "\n")), out, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cpio: %w\n%s", err, stderr.String())
	}
	return out.Close()
}

// loadOrder returns the files of the named modules and of those that they need,
// each after what it needs. A module that is none is built into the kernel.
func loadOrder(modulesDep string, names []string) ([]string, error) {
	files, needs := map[string]string{}, map[string][]string{}
	lines := bufio.NewScanner(strings.NewReader(modulesDep))
	for lines.Scan() {
		file, deps, _ := strings.Cut(lines.Text(), ":")
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		files[strings.ReplaceAll(name, "-", "_")] = file
		needs[file] = strings.Fields(deps)
	}
	var order []string
	var add func(file string)
	add = func(file string) {
		if slices.Contains(order, file) {
			return
		}
		for _, need := range needs[file] {
			add(need)
		}
		order = append(order, file)
	}
	for _, name := range names {
		file := files[name]
		if file == "" {
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
		add(file)
	}
	return order, lines.Err()
}

func copyFile(to, from string, mode os.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, mode)
}
