package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/node/podactor"
)

// maxFile bounds an environment file: containers write them, and the agent has
// to hold them in memory.
const maxFile = 1 << 20

// files reads environment files. One that is not there is left out.
func (e *Environment) files(ctx context.Context, pod *corev1.Pod, names []podactor.EnvFile) (map[podactor.EnvFile][]byte, error) {
	var found map[podactor.EnvFile][]byte
	for _, name := range names {
		dir, err := e.volume(ctx, pod, name.Volume)
		if err != nil {
			return nil, err
		}
		content, err := readBeneath(dir, name.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("couldn't parse env file: %w", err)
		}
		if found == nil {
			found = map[podactor.EnvFile][]byte{}
		}
		found[name] = content
	}
	return found, nil
}

// volume is where the volume is on the host. Only those that a container of the
// pod mounts are there.
func (e *Environment) volume(ctx context.Context, pod *corev1.Pod, name string) (string, error) {
	if e.volumes == nil || !mounts(pod, name) {
		return "", fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", name)
	}
	res, err := e.volumes.Mount(ctx, podactor.MountRequest{Pod: pod, Volume: name})
	if err != nil {
		return "", fmt.Errorf("failed to get host path for volume %q: %w", name, err)
	}
	return res.HostPath, nil
}

func mounts(pod *corev1.Pod, volume string) bool {
	mounted := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
	}
	return slices.ContainsFunc(pod.Spec.InitContainers, mounted) || slices.ContainsFunc(pod.Spec.Containers, mounted)
}

// readBeneath reads a regular file below dir. Containers may have put anything
// there: symlinks that lead out are refused, and pipes and devices not opened.
func readBeneath(dir, path string) ([]byte, error) {
	root, err := beneath.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	handle, err := beneath.Open(root, path)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	info, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", handle.Name(), beneath.ErrNotRegular)
	}
	file, err := os.Open(beneath.ProcPath(handle))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s: is larger than %d bytes", handle.Name(), maxFile)
	}
	return content, err
}
