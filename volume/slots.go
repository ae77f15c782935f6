package volume

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// slots bound how much happens at the same time, for each name apart.
type slots struct {
	width int

	mu   sync.Mutex
	held map[string]*slot
}

type slot struct {
	tokens chan struct{}
	users  int // who has a token or waits for one
}

// take waits for a token of that name, until ctx ends.
func (s *slots) take(ctx context.Context, name string) (release func(), err error) {
	s.mu.Lock()
	one := s.held[name]
	if one == nil {
		one = &slot{tokens: make(chan struct{}, s.width)}
		s.held[name] = one
	}
	one.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(s.held, name)
		}
	}
	select {
	case one.tokens <- struct{}{}:
		return func() {
			<-one.tokens
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// remote names whom a volume's plugin has to wait for, where that is not always
// the same: it may hang while others do not.
func remote(s Source) string {
	var nfs *corev1.NFSVolumeSource
	driver := ""
	if pv := s.PersistentVolume; pv != nil {
		nfs = pv.Spec.NFS
		if pv.Spec.CSI != nil {
			driver = pv.Spec.CSI.Driver
		}
	} else {
		nfs = s.Volume.NFS
		if s.Volume.CSI != nil {
			driver = s.Volume.CSI.Driver
		}
	}
	switch {
	case nfs != nil:
		return " " + nfs.Server
	case driver != "":
		return " " + driver
	}
	return ""
}
