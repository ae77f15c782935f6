package nodefx

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"go.uber.org/fx"

	"nodekit.dev/node"
)

// Replace makes constructor stand in for the default of seam I, which is one
// of the interfaces listed by Seams. The constructor may ask for anything in
// the graph and returns the part, or the part and an error. The default is
// then neither built nor run.
func Replace[I any](constructor any) Option {
	return func(s *settings) {
		o, err := s.override(reflect.TypeFor[I]())
		if err != nil {
			s.fail(err)
			return
		}
		if err := checkConstructor(o.seam, constructor); err != nil {
			s.fail(err)
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
		if err != nil {
			s.fail(err)
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
	used    atomic.Bool
}

var errorType = reflect.TypeFor[error]() //nolint:gochecknoglobals // a constant that Go can not write as one

func checkConstructor(seam reflect.Type, constructor any) error {
	t := reflect.TypeOf(constructor)
	if t == nil || t.Kind() != reflect.Func {
		return fmt.Errorf("%v: want a constructor function, got %T", seam, constructor)
	}
	if t.IsVariadic() {
		return fmt.Errorf("%v: %s is variadic; fx would skip those parameters, so wrap it in a function that passes them", seam, funcName(constructor))
	}
	if t.NumOut() == 0 || t.NumOut() > 2 || (t.NumOut() == 2 && t.Out(1) != errorType) {
		return fmt.Errorf("%v: %s must return the part, or the part and an error", seam, funcName(constructor))
	}
	if !t.Out(0).Implements(seam) {
		return fmt.Errorf("%v: %s returns %v, which does not implement it: %s", seam, funcName(constructor), t.Out(0), missing(t.Out(0), seam))
	}
	return nil
}

// missing names the first method that keeps t from implementing the seam.
func missing(t, seam reflect.Type) string {
	for i := range seam.NumMethod() {
		want := seam.Method(i)
		got, ok := t.MethodByName(want.Name)
		if !ok {
			return fmt.Sprintf("method %s is missing", want.Name)
		}
		_ = got
	}
	return "a method has another signature"
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
	build := func(args []reflect.Value) (reflect.Value, error) { return args[0], nil }
	if o.replace != nil {
		in, build = parameters(o.replace), o.construct
	}
	signature := reflect.FuncOf(in, []reflect.Type{o.seam, errorType}, false)
	body := func(args []reflect.Value) []reflect.Value {
		o.used.Store(true)
		part, err := build(args)
		if err != nil {
			return []reflect.Value{reflect.Zero(o.seam), reflect.ValueOf(&err).Elem()}
		}
		return []reflect.Value{o.wrapped(part, wraps), reflect.Zero(errorType)}
	}
	return fx.Decorate(reflect.MakeFunc(signature, body).Interface()), nil
}

func parameters(fn any) []reflect.Type {
	t := reflect.TypeOf(fn)
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	return in
}

func (o *override) construct(args []reflect.Value) (reflect.Value, error) {
	out := reflect.ValueOf(o.replace).Call(args)
	if len(out) == 2 && !out[1].IsNil() {
		return reflect.Value{}, fmt.Errorf("%s: %w", funcName(o.replace), out[1].Interface().(error))
	}
	if k := out[0].Kind(); (k == reflect.Pointer || k == reflect.Interface) && out[0].IsNil() {
		return reflect.Value{}, fmt.Errorf("%s returned nil", funcName(o.replace))
	}
	return out[0], nil
}

// wrapped applies the wraps, innermost first, and makes the result a value of
// the seam's interface type.
func (o *override) wrapped(part reflect.Value, wraps []node.Ordered[wrapper]) reflect.Value {
	v := reflect.New(o.seam).Elem()
	v.Set(part)
	for _, w := range wraps {
		v.Set(reflect.ValueOf(w.Value(v.Interface())))
	}
	return v
}

// guard fails an override that had no effect.
func (o *override) guard() error {
	if o.used.Load() {
		return nil
	}
	what := "Wrap"
	if o.replace != nil {
		what = "Replace"
	}
	return fmt.Errorf("%s[%v] had no effect: nothing in this agent asks for that part", what, o.seam)
}

func guardAll(overrides []*override) error {
	var errs []error
	for _, o := range overrides {
		errs = append(errs, o.guard())
	}
	return errors.Join(errs...)
}
