package testbed

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The images that every bed's registry serves.
const (
	// PauseImage holds sandboxes; it is pulled and pinned before Start returns.
	PauseImage = RegistryHost + "/pause:1"
	// BusyboxImage has a shell and all applets in /bin.
	BusyboxImage = RegistryHost + "/busybox:1"
	// WebImage runs images/web; its flags are the container's args.
	WebImage = RegistryHost + "/web:1"
)

// File is one file, folder or link of an image.
type File struct {
	Path string
	Mode int64 // 0: 0755
	Data []byte
	Link string // a symbolic link to this
	Dir  bool
}

// MakeImage makes an OCI image of one layer, for this machine.
func MakeImage(config v1.Config, files []File) (v1.Image, error) {
	layer, err := tarball(files)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	// Uncompressed: nobody downloads it, and unpacking is quicker.
	img, err = mutate.AppendLayers(img, static.NewLayer(layer, types.OCIUncompressedLayer))
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config = runtime.GOARCH, "linux", config
	return mutate.ConfigFile(img, file)
}

func tarball(files []File) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Typeflag: tar.TypeReg, Size: int64(len(f.Data))}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		switch {
		case f.Dir:
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		case f.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("layer: %s: %w", f.Path, err)
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("layer: %s: %w", f.Path, err)
		}
	}
	return buf.Bytes(), w.Close()
}

// StandardImages makes the images named above, by reference.
func StandardImages(ctx context.Context) (map[string]v1.Image, error) {
	pause, err := programImage(ctx, "pause")
	if err != nil {
		return nil, err
	}
	web, err := programImage(ctx, "web")
	if err != nil {
		return nil, err
	}
	busybox, err := BusyboxFrom(ctx, v1.Config{Cmd: []string{"sh"}, Env: []string{"PATH=/bin"}})
	if err != nil {
		return nil, err
	}
	return map[string]v1.Image{PauseImage: pause, WebImage: web, BusyboxImage: busybox}, nil
}

// programImage is an image of one static Go program of the images folder.
func programImage(ctx context.Context, name string) (v1.Image, error) {
	program, err := buildProgram(ctx, name)
	if err != nil {
		return nil, err
	}
	return MakeImage(v1.Config{Entrypoint: []string{"/" + name}}, []File{
		{Path: "/etc", Dir: true},
		{Path: "/etc/passwd", Mode: 0o644, Data: []byte(passwd)},
		{Path: "/tmp", Dir: true, Mode: 0o1777},
		{Path: "/" + name, Data: program},
	})
}

const passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"

func buildProgram(ctx context.Context, name string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "nodekit-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "nodekit.dev/test/integration/images/"+name)
	cmd.Env = append(withoutGoFlags(os.Environ()), "CGO_ENABLED=0")
	if _, err := run(cmd); err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return os.ReadFile(out)
}

// BusyboxFrom makes an image of the machine's static busybox with a link per
// applet in /bin.
func BusyboxFrom(ctx context.Context, config v1.Config) (v1.Image, error) {
	program, err := os.ReadFile(busyboxPath)
	if err != nil {
		return nil, err
	}
	applets, err := command(ctx, busyboxPath, "--list")
	if err != nil {
		return nil, err
	}
	files := []File{
		{Path: "/bin", Dir: true},
		{Path: "/bin/busybox", Data: program},
		{Path: "/etc", Dir: true},
		{Path: "/etc/passwd", Mode: 0o644, Data: []byte(passwd)},
		{Path: "/tmp", Dir: true, Mode: 0o1777},
	}
	names := strings.Fields(applets)
	sort.Strings(names)
	for _, applet := range names {
		if applet != "busybox" { // else busybox would be a link to itself
			files = append(files, File{Path: path.Join("/bin", applet), Link: "busybox"})
		}
	}
	return MakeImage(config, files)
}
