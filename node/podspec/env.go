package podspec

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// environment is an ordered set of variables; a later value replaces an
// earlier one in its place.
type environment struct {
	vars  []runtime.EnvVar
	index map[string]int
}

func (e *environment) set(name, v string) {
	if i, ok := e.index[name]; ok {
		e.vars[i].Value = v
		return
	}
	if e.index == nil {
		e.index = map[string]int{}
	}
	e.index[name] = len(e.vars)
	e.vars = append(e.vars, runtime.EnvVar{Name: name, Value: v})
}

func (e *environment) lookup(name string) (string, bool) {
	i, ok := e.index[name]
	if !ok {
		return "", false
	}
	return e.vars[i].Value, true
}

// environment resolves the container's variables: those of whole ConfigMaps and
// Secrets, then its own in order, where a value sees those before it, and last
// the addresses of services, which replace none of the others.
func (b *Builder) environment(req podactor.ContainerSpecRequest, c *corev1.Container) (*environment, error) {
	env, services := &environment{}, &environment{}
	for _, v := range serviceVars(req.Pod, req.Environment.Services) {
		services.set(v.Name, v.Value)
	}
	if err := addWhole(env, c.EnvFrom, req.Environment); err != nil {
		return nil, err
	}
	known := func(name string) (string, bool) {
		if value, ok := env.lookup(name); ok {
			return value, true
		}
		return services.lookup(name)
	}
	for _, v := range c.Env {
		if v.ValueFrom == nil || v.Value != "" { // the API allows only one of them
			env.set(v.Name, expand(v.Value, known))
			continue
		}
		text, ok, err := b.envSource(req, c, v)
		if err != nil {
			return nil, err
		}
		if ok {
			env.set(v.Name, text)
		}
	}
	for _, v := range services.vars {
		if _, taken := env.lookup(v.Name); !taken {
			env.set(v.Name, v.Value)
		}
	}
	return env, nil
}

// envSource is the value of a variable that stands elsewhere; ok is false for
// one that is optional and not there.
func (b *Builder) envSource(req podactor.ContainerSpecRequest, c *corev1.Container, v corev1.EnvVar) (text string, ok bool, err error) {
	switch from := v.ValueFrom; {
	case from.FieldRef != nil:
		text, err = b.podField(req, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		text, err = b.resourceField(req.Pod, c, from.ResourceFieldRef)
	case from.ConfigMapKeyRef != nil:
		return configMapKey(req, from.ConfigMapKeyRef)
	case from.SecretKeyRef != nil:
		return secretKey(req, from.SecretKeyRef)
	case from.FileKeyRef != nil:
		return fileKey(req, from.FileKeyRef)
	default:
		err = errors.New("valueFrom: not known to this agent")
	}
	if err != nil {
		return "", false, fmt.Errorf("env %s: %w", v.Name, err)
	}
	return text, true, nil
}
