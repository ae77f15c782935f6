package vm

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"nodekit.dev/test/integration/testbed"
)

// fromTree are files of the main module that the machine has as they are.
var fromTree = map[string]string{
	"etc/systemd/system/kubelet.service": "examples/systemd/kubelet.service",
	"var/lib/kubelet/config.yaml":        "cmd/kubelet/config/testdata/kubeadm.yaml",
}

// writePayload writes the tar that is laid over the machine's root file system.
// arguments are for the tests in it; tmp is a folder for what is built.
func writePayload(ctx context.Context, path, tmp, arguments string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := tar.NewWriter(file)
	for _, add := range []func() error{
		func() error { return addFolder(out, "files") },
		func() error { return addFromTree(ctx, out) },
		func() error { return addPrograms(ctx, out, tmp) },
		func() error { return addImages(ctx, out) },
		func() error { return addAuthority(out) },
		func() error { return addFile(out, "nodekit/env", 0o644, []byte("ARGS="+arguments+"\n")) },
		out.Close,
		file.Close,
	} {
		if err := add(); err != nil {
			return fmt.Errorf("files of the machine: %w", err)
		}
	}
	return nil
}

func addFile(out *tar.Writer, name string, mode int64, data []byte) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Now()}); err != nil {
		return err
	}
	_, err := out.Write(data)
	return err
}

func addCopy(out *tar.Writer, name string, mode int64, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return addFile(out, name, mode, data)
}

func addFolder(out *tar.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return addCopy(out, name, 0o644, path)
	})
}

func addFromTree(ctx context.Context, out *tar.Writer) error {
	root, err := goOutput(ctx, "list", "-m", "-f", "{{.Dir}}", "nodekit.dev")
	if err != nil {
		return err
	}
	for name, from := range fromTree {
		if err := addCopy(out, name, 0o644, filepath.Join(strings.TrimSpace(root), from)); err != nil {
			return err
		}
	}
	return nil
}

func addPrograms(ctx context.Context, out *tar.Writer, tmp string) error {
	kubelet, err := testbed.BuildAgent(ctx)
	if err != nil {
		return err
	}
	tests := filepath.Join(tmp, "guest.test")
	if _, err := goOutput(ctx, "test", "-c", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", tests, "./guest"); err != nil {
		return err
	}
	return errors.Join(addCopy(out, "usr/bin/kubelet", 0o755, kubelet), addCopy(out, "nodekit/guest.test", 0o755, tests))
}

// addImages adds the images as archives that `ctr images import` takes.
func addImages(ctx context.Context, out *tar.Writer) error {
	images, err := testbed.StandardImages(ctx)
	if err != nil {
		return err
	}
	for _, ref := range []string{testbed.PauseImage, testbed.BusyboxImage} {
		tag, err := name.NewTag(ref)
		if err != nil {
			return err
		}
		var archive bytes.Buffer
		if err := tarball.Write(tag, images[ref], &archive); err != nil {
			return err
		}
		if err := addFile(out, "nodekit/images/"+filepath.Base(tag.RepositoryStr())+".tar", 0o644, archive.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// addAuthority adds the certificate that kubeadm's configuration asks for.
func addAuthority(out *tar.Writer) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	return addFile(out, "etc/kubernetes/pki/ca.crt", 0o644, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// goOutput runs the go command for static programs.
func goOutput(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// GOFLAGS of the caller may say -race.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
