package podspec

import (
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

// environment resolves the container's variables in order: a value sees the
// variables before it.
func (b *Builder) environment(req podactor.ContainerSpecRequest, c *corev1.Container) (*environment, error) {
	env := &environment{}
	for _, v := range c.Env {
		if v.ValueFrom == nil || v.Value != "" { // the API allows only one of them
			env.set(v.Name, expand(v.Value, env.lookup))
			continue
		}
		text, err := b.envSource(req, c, v.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", v.Name, err)
		}
		env.set(v.Name, text)
	}
	return env, nil
}

func (b *Builder) envSource(req podactor.ContainerSpecRequest, c *corev1.Container, from *corev1.EnvVarSource) (string, error) {
	switch {
	case from.FieldRef != nil:
		return b.podField(req, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return b.resourceField(req.Pod, c, from.ResourceFieldRef)
	}
	return "", fmt.Errorf("valueFrom: not acted on yet by this agent")
}
