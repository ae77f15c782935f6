package nodecert

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"crypto/rand"
)

func pairUntil(t *testing.T, notAfter time.Time) (*tls.Certificate, []byte) {
	t.Helper()
	k, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: notAfter.Add(-time.Hour), NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.private.Public(), k.private)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := parsePair(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), k.pem)
	if err != nil {
		t.Fatal(err)
	}
	return pair, k.pem
}

func newStore(t *testing.T) store {
	return store{dir: filepath.Join(t.TempDir(), "pki"), prefix: "kubelet-client", log: slog.New(slog.DiscardHandler)}
}

func (s store) mustSave(t *testing.T, notAfter, now time.Time) *tls.Certificate {
	t.Helper()
	pair, key := pairUntil(t, notAfter)
	if err := s.save(pair, key, now); err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestStoreKeepsThePairInUse(t *testing.T) {
	s := newStore(t)
	if got := s.load(noon); got != nil {
		t.Fatalf("an empty store has %v", got.Leaf)
	}
	first := s.mustSave(t, noon.Add(2*time.Hour), noon)
	second := s.mustSave(t, noon.Add(3*time.Hour), noon.Add(time.Second))
	if got := s.load(noon); got == nil || !got.Leaf.Equal(second.Leaf) {
		t.Fatal("not the newer pair")
	}
	target, err := os.Readlink(s.current())
	if err != nil || target != filepath.Join(s.dir, "kubelet-client-2026-01-01-12-00-01.pem") {
		t.Fatalf("link to %s, %v", target, err)
	}
	if got, err := loadPair(s.dated()[1], s.dated()[1]); err != nil || !got.Leaf.Equal(first.Leaf) {
		t.Fatalf("the older pair is gone: %v", err)
	}
	// The pair that expired goes with the next save; the files do not add up.
	s.mustSave(t, noon.Add(4*time.Hour), noon.Add(2*time.Hour+time.Minute))
	if list := s.dated(); len(list) != 2 {
		t.Fatalf("kept %v", list)
	}
}

// Killed at any moment of a write, by us or by the stock kubelet, there is a
// pair or nothing, never an error that stays.
func TestStoreSurvivesEveryTruncation(t *testing.T) {
	s := newStore(t)
	s.mustSave(t, noon.Add(time.Hour), noon)
	target := s.dated()[0]
	intact, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	for n := range intact {
		if err := os.WriteFile(target, intact[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.load(noon); got != nil && n < len(intact)-1 {
			t.Fatalf("cut to %d of %d bytes: a pair", n, len(intact))
		}
		if _, err := os.Stat(target); err == nil && n < len(intact)-1 {
			t.Fatalf("cut to %d bytes: not set aside", n)
		}
	}
	aside, err := filepath.Glob(target + ".damaged*")
	if err != nil || len(aside) == 0 || len(aside) > 10 {
		t.Fatalf("%d files kept aside, %v", len(aside), err)
	}
}

func TestStoreFallsBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s store) error
		want   bool
	}{
		{"link gone, stock's updated link there", func(s store) error { return os.Rename(s.current(), s.path("updated")) }, true},
		{"link gone", func(s store) error { return os.Remove(s.current()) }, true},
		{"link to nothing", func(s store) error {
			return errors.Join(os.Remove(s.current()), os.Symlink("/does/not/exist", s.current()))
		}, true},
		{"all gone", func(s store) error { return os.RemoveAll(s.dir) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			pair := s.mustSave(t, noon.Add(time.Hour), noon)
			if err := c.change(s); err != nil {
				t.Fatal(err)
			}
			got := s.load(noon)
			if (got != nil) != c.want || got != nil && !got.Leaf.Equal(pair.Leaf) {
				t.Fatalf("found %v, want %v", got != nil, c.want)
			}
			if _, err := os.Stat(s.current()); (err == nil) != c.want {
				t.Fatalf("the link: %v", err)
			}
		})
	}
	t.Run("older ones that expired do not count", func(t *testing.T) {
		s := newStore(t)
		s.mustSave(t, noon.Add(time.Hour), noon)
		if err := os.Remove(s.current()); err != nil {
			t.Fatal(err)
		}
		if got := s.load(noon.Add(2 * time.Hour)); got != nil {
			t.Fatal("an expired pair")
		}
	})
}

func TestKeptKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pki", "kubelet-client.key.tmp")
	first, err := keptKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := keptKey(path)
	if err != nil || string(again.public) != string(first.public) {
		t.Fatalf("another key after a restart, %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if err := os.Truncate(path, 50); err != nil {
		t.Fatal(err)
	}
	if torn, err := keptKey(path); err != nil || string(torn.public) == string(first.public) {
		t.Fatalf("a torn key: %v", err)
	}
	want := clientTemplate("edge-7")
	if requestName(first, want) != requestName(again, want) || requestName(first, want) == requestName(first, clientTemplate("edge-8")) {
		t.Fatal("request names do not follow key and template")
	}
	if err := errors.Join(dropKey(path), dropKey(path)); err != nil {
		t.Fatal(err)
	}
}
