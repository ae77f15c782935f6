package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"nodekit.dev/node/objects/internal/told"
)

// Store answers from memory, for nodes without an API server: what Go code put
// in it with Set. There are no Services in it. Use [NewStore]. Safe for
// concurrent use.
type Store struct {
	told  *told.Changes[Change]
	ready chan struct{} // closed by the first Set

	mu         sync.Mutex
	isReady    bool
	secrets    map[name]*corev1.Secret
	configMaps map[name]*corev1.ConfigMap
	secretRefs refs
	mapRefs    refs
}

// NewStore makes a store that has not been told anything yet: getters wait for
// the first Set.
func NewStore() *Store {
	return &Store{
		told: told.New(ChangeOf), ready: make(chan struct{}),
		secretRefs: refs{}, mapRefs: refs{},
	}
}

// Set replaces all that the store holds. An object that is not valid, or named
// twice, is an error that names it, and nothing changes. What was set must not
// be changed any more.
func (s *Store) Set(secrets []*corev1.Secret, configMaps []*corev1.ConfigMap) error {
	newSecrets, err := byName(KindSecret, secrets, CheckSecret)
	newMaps, err2 := byName(KindConfigMap, configMaps, CheckConfigMap)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	s.mu.Lock()
	affected := referrers(s.secretRefs, differing(s.secrets, newSecrets))
	maps.Copy(affected, referrers(s.mapRefs, differing(s.configMaps, newMaps)))
	s.secrets, s.configMaps = newSecrets, newMaps
	first := !s.isReady
	if first {
		s.isReady = true
		close(s.ready)
	}
	s.mu.Unlock()
	if !first { // who waited for the first has its answer
		s.told.Add(slices.Sorted(maps.Keys(affected))...)
	}
	return nil
}

// Run hands out changes until ctx ends, and returns its error.
func (s *Store) Run(ctx context.Context) error { return s.told.Run(ctx) }

// Changes tells which pods to bring up to date. One reader; never closed.
func (s *Store) Changes() <-chan Change { return s.told.Out() }

// Secret returns the Secret, for the pod of that UID.
func (s *Store) Secret(ctx context.Context, uid types.UID, namespace, secret string) (*corev1.Secret, error) {
	n := name{namespace, secret}
	if err := s.wait(ctx, KindSecret, uid, n, s.secretRefs); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(KindSecret, n, s.secrets)
}

// ConfigMap returns the ConfigMap, for the pod of that UID.
func (s *Store) ConfigMap(ctx context.Context, uid types.UID, namespace, configMap string) (*corev1.ConfigMap, error) {
	n := name{namespace, configMap}
	if err := s.wait(ctx, KindConfigMap, uid, n, s.mapRefs); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(KindConfigMap, n, s.configMaps)
}

// name is that of one object.
type name struct{ namespace, name string }

// refs are the pods that refer to each name.
type refs map[name]map[types.UID]struct{}

// wait notes that the pod refers to the name, and waits for the first Set.
func (s *Store) wait(ctx context.Context, kind string, uid types.UID, n name, in refs) error {
	s.mu.Lock()
	if in[n] == nil {
		in[n] = map[types.UID]struct{}{}
	}
	in[n][uid] = struct{}{}
	s.mu.Unlock()
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return &UnreachableError{Kind: kind, Namespace: n.namespace, Name: n.name, Err: context.Cause(ctx)}
	}
}

func found[T any](kind string, n name, objects map[name]*T) (*T, error) {
	if object := objects[n]; object != nil {
		return object, nil
	}
	return nil, &NotFoundError{Kind: kind, Namespace: n.namespace, Name: n.name}
}

// Services are none.
func (s *Store) Services(context.Context, types.UID, string) ([]*corev1.Service, error) {
	return nil, nil
}

// Release drops what the pod of that UID refers to. Unknown UIDs are fine.
func (s *Store) Release(uid types.UID) {
	s.mu.Lock()
	for _, in := range []refs{s.secretRefs, s.mapRefs} {
		for n, uids := range in {
			if delete(uids, uid); len(uids) == 0 {
				delete(in, n)
			}
		}
	}
	s.mu.Unlock()
	s.told.Forget(uid)
}

// byName checks objects and sorts them in.
func byName[P interface {
	*T
	metav1.Object
}, T any](kind string, list []P, check func(P) error) (map[name]*T, error) {
	out := map[name]*T{}
	var errs []error
	for _, object := range list {
		n := name{object.GetNamespace(), object.GetName()}
		switch err := check(object); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s %q: %w", kind, n.namespace+"/"+n.name, err))
		case out[n] != nil:
			errs = append(errs, fmt.Errorf("%s %q: named twice", kind, n.namespace+"/"+n.name))
		default:
			out[n] = object
		}
	}
	return out, errors.Join(errs...)
}

// differing are the names whose objects are not the same in both.
func differing[T any](old, now map[name]*T) []name {
	var list []name
	for n := range old {
		if now[n] == nil {
			list = append(list, n)
		}
	}
	for n, object := range now {
		if old[n] != object && !reflect.DeepEqual(old[n], object) {
			list = append(list, n)
		}
	}
	return list
}

func referrers(in refs, of []name) map[types.UID]struct{} {
	uids := map[types.UID]struct{}{}
	for _, n := range of {
		maps.Copy(uids, in[n])
	}
	return uids
}

// CheckSecret says what the API server would refuse in a Secret: names and keys
// that can not be files, and more than 1 MiB of data.
func CheckSecret(s *corev1.Secret) error {
	size := 0
	for _, value := range s.Data {
		size += len(value)
	}
	return errors.Join(checkNames(s), checkKeys(slices.Sorted(maps.Keys(s.Data))), checkSize(size))
}

// CheckConfigMap says what the API server would refuse in a ConfigMap, as
// CheckSecret.
func CheckConfigMap(m *corev1.ConfigMap) error {
	size := 0
	var twice error
	for key, value := range m.Data {
		size += len(value)
		if _, ok := m.BinaryData[key]; ok {
			twice = fmt.Errorf("key %q is both in data and in binaryData", key)
		}
	}
	for _, value := range m.BinaryData {
		size += len(value)
	}
	keys := slices.AppendSeq(slices.Sorted(maps.Keys(m.Data)), maps.Keys(m.BinaryData))
	return errors.Join(checkNames(m), checkKeys(keys), twice, checkSize(size))
}

func checkNames(o metav1.Object) error {
	var errs []error
	for _, problem := range validation.IsDNS1123Subdomain(o.GetName()) {
		errs = append(errs, fmt.Errorf("metadata.name: %s", problem))
	}
	for _, problem := range validation.IsDNS1123Label(o.GetNamespace()) {
		errs = append(errs, fmt.Errorf("metadata.namespace: %s", problem))
	}
	return errors.Join(errs...)
}

func checkKeys(keys []string) error {
	var errs []error
	for _, key := range keys {
		for _, problem := range validation.IsConfigMapKey(key) {
			errs = append(errs, fmt.Errorf("key %q: %s", key, problem))
		}
	}
	return errors.Join(errs...)
}

func checkSize(size int) error {
	if size > corev1.MaxSecretSize {
		return fmt.Errorf("%d bytes of data: at most %d are possible", size, corev1.MaxSecretSize)
	}
	return nil
}
