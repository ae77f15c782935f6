package register

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestAPIServerAway: registration and lease are tried again for as long as it
// takes, the log is not filled, and all is there at once when it is back.
func TestAPIServerAway(t *testing.T) {
	b := newBench(t)
	b.api.fail = func(string) error { return errors.New("connection refused") }
	b.run(func() {
		b.pass(30 * time.Minute)
		if tries := b.api.count("POST nodes"); tries < 30*60/11 || tries > 30*60/6 {
			t.Errorf("%d tries to register in half an hour", tries)
		}
		if lines := strings.Count(b.logged(), "\n"); lines < 50 || lines > 75 {
			t.Errorf("%d lines in the log for half an hour", lines)
		}
		if b.r.Node().Labels[corev1.LabelHostname] != "n1" || len(b.r.Node().Status.Capacity) == 0 {
			t.Error("the node is not known without the API server")
		}
		b.api.do(func() { b.api.fail = nil })
		b.pass(11 * time.Second)
		if b.api.now() == nil || b.api.leaseNow() == nil {
			t.Error("no node or no lease 11 s after the API server came back")
		}
	})
}

// TestHeartbeatFailed is called for the second and further tries of one
// heartbeat of either kind, five in all.
func TestHeartbeatFailed(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.api.do(func() {
			b.api.fail = func(call string) error {
				if strings.HasPrefix(call, "PATCH") || strings.HasPrefix(call, "PUT leases") {
					return apierrors.NewInternalError(errors.New("down"))
				}
				return nil
			}
			b.api.calls = nil
		})
		b.do(func() { b.pressure.Disk, b.events = true, nil })
		b.r.Kick()
		b.pass(2 * time.Second)
		b.wantEvents("what the API server did not take is not told")
		if n := b.api.count("PATCH"); n != 5 || b.failures() != 4 {
			t.Errorf("%d tries to tell the status, %d failed heartbeats", n, b.failures())
		}
		b.pass(10 * time.Second) // the lease, and the status again
		if n := b.api.count("PUT leases"); n != 5 {
			t.Errorf("%d tries to renew the lease", n)
		}
		b.api.do(func() { b.api.fail = nil })
		b.pass(11 * time.Second)
		if got := statusOf(b.api.now(), corev1.NodeDiskPressure); got != "True" {
			t.Errorf("after the API server came back: disk pressure %s", got)
		}
		b.wantEvents("taken", "Normal NodeHasDiskPressure")
	})
}

// TestOutageIsToldOnce: an API server that is away is one line of each kind, not
// one per try, and so is its return.
func TestOutageIsToldOnce(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.pass(time.Minute)
		port := 0
		b.api.do(func() {
			b.api.fail = func(string) error {
				port++
				return fmt.Errorf("read tcp 10.0.0.5:%d->10.0.0.1:6443: connection reset by peer", 40000+port)
			}
		})
		b.do(func() { b.log.Reset(); b.pressure.Disk = true })
		b.pass(50 * time.Second)
		said := func() (text string) { b.do(func() { text = b.log.String() }); return text }
		if text := said(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "Unable to update node status") || !strings.Contains(text, "Failed to update lease") {
			t.Errorf("while it is away:\n%s", text)
		}
		b.pass(50 * time.Second) // a reminder after a minute
		if text := said(); strings.Count(text, "\n") != 4 {
			t.Errorf("a while later:\n%s", text)
		}
		b.api.do(func() { b.api.fail = nil })
		b.do(func() { b.log.Reset() })
		b.pass(time.Minute)
		if text := said(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "Node status is updated again") || !strings.Contains(text, "Lease is renewed again") {
			t.Errorf("when it is back:\n%s", text)
		}
	})
}

func TestLease(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.pass(time.Second)
		lease := b.api.leaseNow()
		if *lease.Spec.HolderIdentity != "n1" || *lease.Spec.LeaseDurationSeconds != 40 || lease.Namespace != "kube-node-lease" || lease.Name != "n1" {
			t.Errorf("lease %+v", lease)
		}
		if o := lease.OwnerReferences; len(o) != 1 || o[0].Kind != "Node" || o[0].Name != "n1" || o[0].UID != b.r.UID() || o[0].APIVersion != "v1" {
			t.Errorf("owner %+v", o)
		}
		b.api.do(func() { b.api.calls = nil })
		b.pass(10 * time.Minute)
		if n := b.api.count("PUT leases"); n < 57 || n > 60 || b.api.count("GET leases") > 0 {
			t.Errorf("%d renewals in ten minutes, %d reads", n, b.api.count("GET leases"))
		}
		b.api.do(func() { b.api.lease.ResourceVersion = "9999" }) // someone wrote it
		b.pass(11 * time.Second)
		if ago := time.Since(b.api.leaseNow().Spec.RenewTime.Time); ago > 11*time.Second {
			t.Errorf("the last renewal is %v old after a conflict", ago)
		}
		b.api.do(func() { b.api.lease.OwnerReferences[0].UID = "an earlier node's" })
		b.pass(11 * time.Second)
		if o := b.api.leaseNow().OwnerReferences; len(o) != 1 || o[0].UID != b.r.UID() {
			t.Errorf("the lease of an earlier node: %+v", o)
		}
		b.api.do(func() { b.api.lease = nil })
		b.pass(11 * time.Second)
		if b.api.leaseNow() == nil {
			t.Error("a lease that was deleted is not made again")
		}
	})
}
