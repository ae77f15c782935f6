package expand

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
)

func pending(c *corev1.PersistentVolumeClaim) {
	c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending,
	}
	c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue},
		{Type: "vendor.example/Backed", Status: corev1.ConditionTrue},
	}
}

// pass lets time go by, and all that is due then come to rest.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// reasons are what users were told, of pods and claims.
func (w *world) reasons() (all []string) {
	w.do(func() {
		for _, e := range w.events {
			about := "pod"
			if e.Claim != nil {
				about = "claim"
			}
			all = append(all, about+" "+e.Reason)
		}
	})
	return all
}

// ends checks how the claim and the node are.
func (w *world) ends(size int64, calls int, statuses ...corev1.ClaimResourceStatus) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if told(w.claim) != size || len(w.calls) != calls || !slices.Equal(w.statuses, statuses) {
		w.t.Errorf("the claim has %d after %d calls and %q; want %d, %d and %q", told(w.claim), len(w.calls), w.statuses, size, calls, statuses)
	}
}

// TestOnline: a claim that is watched is grown at once, and told each step;
// what is not about its size stays.
func TestOnline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, ""))
		w.start()
		synctest.Wait()
		w.ends(gi, 0)
		w.change(pending)
		synctest.Wait()
		w.ends(2*gi, 1, corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, "")
		if c := w.claim.Status.Conditions; len(c) != 1 || c[0].Type != "vendor.example/Backed" {
			t.Errorf("conditions %v", c)
		}
		if got, want := w.reasons(), []string{"pod FileSystemResizeSuccessful", "claim FileSystemResizeSuccessful"}; !slices.Equal(got, want) {
			t.Error(got)
		}
		if m := w.events[0].Message; m != `MountVolume.NodeExpandVolume succeeded for volume "pv" n1` {
			t.Error(m)
		}
		if len(w.grown) != 1 || w.grown[0].Size != 2*gi || w.grown[0].Err != nil {
			t.Error(w.grown)
		}
	})
}

// TestWithoutWatch: the Node authorizer lets nobody watch: the claim is read
// once a minute, and not at all where the driver can not grow it.
func TestWithoutWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, ""))
		w.mayWatch, w.grows = false, false
		e := w.start()
		pass(time.Hour)
		if w.gets != 0 {
			t.Errorf("%d reads for a driver that does not grow", w.gets)
		}
		w.do(func() { w.grows = true })
		e.Changed()
		synctest.Wait()
		w.change(pending)
		pass(70 * time.Second)
		w.ends(2*gi, 1, corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, "")
		w.do(func() { w.gets = 0 })
		pass(time.Hour)
		if w.gets < 54 || w.gets > 67 {
			t.Errorf("%d reads in an hour", w.gets)
		}
		w.do(func() { w.uses, w.gets = nil, 0 })
		e.Changed()
		pass(time.Hour)
		if w.gets != 0 {
			t.Errorf("%d reads after the volume was unmounted", w.gets)
		}
	})
}

// TestInfeasible: the claim and the pod's users are told, once, and nothing is
// tried again.
func TestInfeasible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending))
		w.fail = []error{&Failure{Infeasible, errors.New("too big")}}
		w.start()
		pass(time.Hour)
		w.ends(gi, 1, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible)
		c := w.claim.Status.Conditions
		if len(c) != 1 || c[0].Type != corev1.PersistentVolumeClaimNodeResizeError || !strings.Contains(c[0].Message, "failed to expand pvc with too big") {
			t.Error(c)
		}
		if got := w.reasons(); !slices.Equal(got, []string{"pod VolumeResizeFailed"}) {
			t.Error(got)
		}
	})
}

// TestFailures: what may go away is tried again, ever more slowly; users hear of
// it once, and the claim of what is sure.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending))
		for range 6 {
			w.fail = append(w.fail, &Failure{Final, errors.New("no")})
		}
		w.claim.Spec.Resources.Requests[corev1.ResourceStorage] = quantity(2 * gi)
		w.start()
		pass(time.Hour)
		w.ends(2*gi, 7, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInProgress, "")
		if len(w.claim.Status.Conditions) != 0 {
			t.Error(w.claim.Status.Conditions)
		}
		for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
			if got := w.calls[i+1].Sub(w.calls[i]); got < want/2 || got > 2*want {
				t.Errorf("try %d came %v after the one before", i+1, got)
			}
		}
		if got := w.reasons(); !slices.Equal(got, []string{"pod VolumeResizeFailed", "pod FileSystemResizeSuccessful", "claim FileSystemResizeSuccessful"}) {
			t.Error(got)
		}
	})
}

// TestRecovery: while the growth fails for sure, the claim asks for another size:
// the controllers get it back.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending))
		w.claim.Spec.Resources.Requests[corev1.ResourceStorage] = quantity(3 * gi / 2)
		w.fail = []error{&Failure{Final, errors.New("no")}, &Failure{Final, errors.New("no")}, &Failure{Final, errors.New("no")}}
		w.start()
		pass(time.Hour)
		if status(w.claim) != corev1.PersistentVolumeClaimNodeResizeInfeasible || len(w.calls) != 2 {
			t.Errorf("%q after %d calls", status(w.claim), len(w.calls))
		}
	})
}

// TestInUse: a driver that does not grow what is in use is not asked again for
// that size.
func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending))
		w.fail = []error{&Failure{InUse, errors.New("in use")}}
		w.start()
		pass(time.Hour)
		w.ends(gi, 1, corev1.PersistentVolumeClaimNodeResizeInProgress)
		w.do(func() { w.pv.Spec.Capacity[corev1.ResourceStorage] = quantity(3 * gi) })
		pass(2 * time.Minute)
		w.ends(3*gi, 2, corev1.PersistentVolumeClaimNodeResizeInProgress, "")
	})
}

// TestAnotherNodeWasQuicker: the claim has its size, and this node's part of the
// volume has not: it is grown, and the claim is left alone.
func TestAnotherNodeWasQuicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(2*gi, "", many))
		w.start()
		pass(time.Hour)
		w.ends(2*gi, 1)
		opted := newWorld(t, claimOf(2*gi, "", many, optedOut))
		opted.start()
		pass(time.Hour)
		opted.ends(2*gi, 0)
	})
}

// TestReadOnly: a volume that is only read here is not grown, and users are told
// why; where another pod may write it is.
func TestReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending))
		w.uses[0].ReadOnly = true
		e := w.start()
		pass(time.Hour)
		w.ends(gi, 0)
		if got := w.reasons(); !slices.Equal(got, []string{"pod FileSystemResizeFailed", "claim FileSystemResizeFailed"}) {
			t.Error(got)
		}
		if m := w.events[0].Message; m != `MountVolume.NodeExpandVolume failed for volume "pv" requested read-only file system` {
			t.Error(m)
		}
		writer := w.uses[0]
		writer.ReadOnly, writer.UID = false, "zz"
		w.do(func() { w.uses = []volume.Recorded{w.uses[0], writer} })
		e.Changed()
		synctest.Wait()
		w.ends(2*gi, 1, corev1.PersistentVolumeClaimNodeResizeInProgress, "")
	})
}

// TestWhileMounting: the volume was grown before its pod started: the claim gets
// its size, and nobody grows it again.
func TestWhileMounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending))
		w.size = 2 * gi
		use := w.uses[0]
		w.uses = nil
		e := w.start()
		e.Grown(Growth{Volume: use, Size: 2 * gi}) // before the mount is known
		w.do(func() { w.uses = []volume.Recorded{use} })
		e.Changed()
		synctest.Wait()
		w.ends(2*gi, 0, "")
		if got := w.reasons(); !slices.Equal(got, []string{"pod FileSystemResizeSuccessful", "claim FileSystemResizeSuccessful"}) {
			t.Error(got)
		}
	})
}

// TestStaleClaim: somebody else wrote the claim meanwhile: it is read again
// before the driver is called.
func TestStaleClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending))
		w.conflicts = 2
		w.start()
		pass(10 * time.Second)
		w.ends(2*gi, 1, corev1.PersistentVolumeClaimNodeResizeInProgress, "")
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Config{}, Parts{}); err == nil || !strings.Contains(err.Error(), "NodeName") || !strings.Contains(err.Error(), "Interval") {
		t.Error(err)
	}
	cfg := Default()
	cfg.NodeName = "n1"
	if _, err := New(cfg, Parts{}); err == nil || !strings.Contains(err.Error(), "Grower") {
		t.Error(err)
	}
}
