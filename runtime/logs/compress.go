package logs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"nodekit.dev/internal/atomicfile"
)

// compressOlder compresses all rotated logs of a log but the newest, and
// removes what an interrupted compression left. One call at a time per log.
func compressOlder(ctx context.Context, path string) (done []string, err error) {
	older, temps, err := listRotated(path)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range temps {
		errs = append(errs, os.Remove(name))
	}
	packed := map[string]bool{}
	for _, l := range older {
		packed[l.plain] = packed[l.plain] || l.gz
	}
	for i, l := range older {
		switch {
		case l.gz:
		case packed[l.plain]: // complete, only its original was not removed yet
			errs = append(errs, os.Remove(l.path))
		case older[len(older)-1].plain != l.plain:
			if err := compressFile(ctx, older[i].plain); err != nil {
				errs = append(errs, err)
				continue
			}
			done = append(done, l.plain+gzSuffix)
		}
	}
	return done, errors.Join(errs...)
}

// compressFile replaces a rotated log by its compressed form, which gets its
// name only when it is complete on disk.
func compressFile(ctx context.Context, plain string) (err error) {
	temp := plain + tmpSuffix
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("compress log %s: %w", plain, err), ignoreMissing(os.Remove(temp)))
		}
	}()
	if err := writeCompressed(ctx, plain, temp); err != nil {
		return err
	}
	if _, err := os.Lstat(plain); err != nil {
		return err // removed meanwhile: it must not come back
	}
	if err := os.Rename(temp, plain+gzSuffix); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(filepath.Dir(plain)); err != nil {
		return err
	}
	return ignoreMissing(os.Remove(plain))
}

func writeCompressed(ctx context.Context, plain, temp string) (err error) {
	in, err := os.Open(plain)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packer := gzip.NewWriter(out)
	packer.ModTime = info.ModTime()
	if _, err := io.Copy(packer, untilDone{ctx.Done(), in}); err != nil {
		return err
	}
	if err := packer.Close(); err != nil {
		return err
	}
	return out.Sync()
}

// untilDone ends a long copy when the agent stops.
type untilDone struct {
	done <-chan struct{}
	r    io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	select {
	case <-u.done:
		return 0, context.Canceled
	default:
		return u.r.Read(p)
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
