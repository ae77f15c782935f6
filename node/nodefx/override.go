package nodefx

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"go.uber.org/fx"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
)

// Replace makes constructor stand in for the default of seam I, which is one
// of the interfaces that [Seams] lists. The constructor may ask for anything
// in the graph and returns the part, or the part and an error. The default is
// then neither built nor run, unless the constructor asks for I itself: that
// gives it the default, to put something around it.
func Replace[I any](constructor any) Option {
	return func(s *settings) {
		o, err := s.override(reflect.TypeFor[I]())
		if err == nil {
			err = checkConstructor(reflect.TypeFor[I](), constructor)
		}
		if err != nil {
			s.fail(fmt.Errorf("Replace: %w", err))
			return
		}
		if o.replace != nil {
			s.fail(fmt.Errorf("two replacements of %v: %s and %s; keep one, or turn one into a Wrap", o.seam, funcName(o.replace), funcName(constructor)))
			return
		}
		o.replace = constructor
	}
}

// Wrap puts fn around the part of seam I, default or replacement. Wraps of one
// seam compose: each goes around those it names in after, others by name.
func Wrap[I any](name string, after []string, fn func(I) I) Option {
	return func(s *settings) {
		o, err := s.override(reflect.TypeFor[I]())
		if err == nil && fn == nil {
			err = fmt.Errorf("%v: the function is nil", o.seam)
		}
		if err != nil {
			s.fail(fmt.Errorf("Wrap %q: %w", name, err))
			return
		}
		o.wraps = append(o.wraps, node.Ordered[wrapper]{Name: name, After: after, Value: func(v any) any {
			return fn(v.(I))
		}})
	}
}

type wrapper func(part any) any

// override is all that was said about one seam. It becomes one Decorate.
type override struct {
	seam    reflect.Type
	replace any
	wraps   []node.Ordered[wrapper]
	effect  *effect
}

// override returns what is known of an override of seam t so far.
func (s *settings) override(t reflect.Type) (*override, error) {
	for _, o := range s.overrides {
		if o.seam == t {
			return o, nil
		}
	}
	for _, known := range seams() {
		if known == t {
			o := &override{seam: t, effect: &effect{what: fmt.Sprintf("an override of %v", t)}}
			s.overrides = append(s.overrides, o)
			s.effects = append(s.effects, o.effect)
			return o, nil
		}
	}
	return nil, fmt.Errorf("%v is not a seam; these are: %s", t, seamNames())
}

// replaces says whether the default of seam I is replaced.
func replaces[I any](s *settings) bool {
	for _, o := range s.overrides {
		if o.seam == reflect.TypeFor[I]() && o.replace != nil {
			return true
		}
	}
	return false
}

// decorate turns the override into one fx.Decorate: a function with the
// constructor's parameters (or the seam itself, for wraps only) that returns
// the seam.
func (o *override) decorate() (fx.Option, error) {
	wraps, err := node.InOrder("wrap", o.wraps)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", o.seam, err)
	}
	in := []reflect.Type{o.seam}
	if o.replace != nil {
		in = parameters(o.replace)
	}
	return fx.Decorate(makeFunc(in, o.seam, func(args []reflect.Value) (any, error) {
		o.effect.happened.Store(true)
		if o.replace == nil {
			if isNil(args[0]) {
				return nil, fmt.Errorf("wrap %q had no effect: this agent has no %v; Replace it, or join a cluster", wraps[0].Name, o.seam)
			}
			return wrapped(args[0].Interface(), wraps)
		}
		part, err := construct(o.replace, args)
		if err != nil {
			return nil, err
		}
		return wrapped(part, wraps)
	})), nil
}

// wrapped applies the wraps, innermost first.
func wrapped(part any, wraps []node.Ordered[wrapper]) (any, error) {
	for _, w := range wraps {
		name := fmt.Sprintf("wrap %q", w.Name)
		err := tasks.Contain(name, func() error {
			if part = w.Value(part); part == nil || isNil(reflect.ValueOf(part)) {
				return fmt.Errorf("%s returned nil", name)
			}
			return nil
		})
		if err != nil {
			return nil, readablePanic(err)
		}
	}
	return part, nil
}

// effect remembers whether the graph used what an option said.
type effect struct {
	what     string
	happened atomic.Bool
}

// guard fails options that had no effect, which fx would not mind.
func guard(effects []*effect) error {
	var errs []error
	for _, e := range effects {
		if !e.happened.Load() {
			errs = append(errs, fmt.Errorf("%s had no effect: nothing in this agent asks for that part", e.what))
		}
	}
	return errors.Join(errs...)
}
