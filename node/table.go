package node

import (
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// record is one incarnation of a pod: one actor, or a pod that was found in
// the runtime and that no source has named yet (actor nil).
type record struct {
	uid, namespace, name string
	source               string      // empty: found in the runtime
	foundFrom            string      // for those: the source that its annotations tell
	locks                []string    // what two pods can not be at the same time
	order                int64       // place in line for the runtime
	given                *corev1.Pod // as the source gave it, before mutators
	want                 lifecycle.Want
	actor                *podactor.Actor
	leaving              bool // asked to go and leave nothing
	finished             bool
	view                 atomic.Pointer[PodView]

	telling sync.Mutex             // held while sinks are told, so that the newest status is the last
	told    *podactor.StatusUpdate // what the actor said last, before mutators
}

// table holds all records, and who waits for whom: a pod that comes back under
// the UID or static name of one that is still going waits until that is gone.
// All its operations cost the same however many pods there are.
type table struct {
	all     map[*record]struct{}
	byUID   map[string]*record   // the newest incarnation
	holders map[string][]*record // by lock
	waiting map[string][]*record // by lock, first in line first
}

func newTable() table {
	return table{
		all:     map[*record]struct{}{},
		byUID:   map[string]*record{},
		holders: map[string][]*record{},
		waiting: map[string][]*record{},
	}
}

// locksOf lists what a pod holds: its UID, and for a static pod its name.
func locksOf(uid, namespace, name string, static bool) []string {
	locks := []string{"uid/" + uid}
	if static {
		locks = append(locks, "name/"+namespace+"/"+name)
	}
	return locks
}

// enter adds a record. It takes its locks, or all of it waits (held).
func (t *table) enter(rec *record) (held bool) {
	t.all[rec] = struct{}{}
	t.byUID[rec.uid] = rec
	if t.free(rec) {
		t.take(rec)
		return false
	}
	for _, lock := range rec.locks {
		t.waiting[lock] = append(t.waiting[lock], rec)
	}
	return true
}

// enterExisting adds a record, or new locks of one, for a pod that exists
// already: there is no use in waiting.
func (t *table) enterExisting(rec *record) {
	t.all[rec] = struct{}{}
	t.byUID[rec.uid] = rec
	t.take(rec)
}

func (t *table) free(rec *record) bool {
	return !slices.ContainsFunc(rec.locks, func(lock string) bool { return len(t.holders[lock]) > 0 })
}

func (t *table) take(rec *record) {
	for _, lock := range rec.locks {
		if !slices.Contains(t.holders[lock], rec) {
			t.holders[lock] = append(t.holders[lock], rec)
		}
	}
}

// leave removes a record and returns those whose turn it is now.
func (t *table) leave(rec *record) []*record {
	delete(t.all, rec)
	if t.byUID[rec.uid] == rec {
		delete(t.byUID, rec.uid)
	}
	for _, lock := range rec.locks {
		remove(t.holders, lock, rec)
		remove(t.waiting, lock, rec)
	}
	return t.promote(rec.locks)
}

// promote gives freed locks to the first in line that then has all of its own.
// Those that are leaving go without ever having started.
func (t *table) promote(locks []string) []*record {
	var promoted []*record
	for _, lock := range locks {
		i := slices.IndexFunc(t.waiting[lock], func(rec *record) bool { return !rec.leaving && t.free(rec) })
		if i < 0 {
			continue
		}
		rec := t.waiting[lock][i]
		for _, lock := range rec.locks {
			remove(t.waiting, lock, rec)
		}
		t.take(rec)
		promoted = append(promoted, rec)
	}
	return promoted
}

// holder is the pod of that UID that exists on the node, if any; the newest
// incarnation may still be waiting for it to go.
func (t *table) holder(uid string) *record {
	if holders := t.holders["uid/"+uid]; len(holders) > 0 {
		return holders[0]
	}
	return nil
}

func remove(m map[string][]*record, key string, rec *record) {
	left := slices.DeleteFunc(m[key], func(r *record) bool { return r == rec })
	if len(left) == 0 {
		delete(m, key)
		return
	}
	m[key] = left
}
