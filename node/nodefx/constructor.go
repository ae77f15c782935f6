package nodefx

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"nodekit.dev/internal/tasks"
)

// checkConstructor wants func(anything in the graph) (implementation[, error]).
func checkConstructor(seam reflect.Type, constructor any) error {
	t := reflect.TypeOf(constructor)
	isError := func(t reflect.Type) bool { return t == reflect.TypeFor[error]() }
	switch {
	case t == nil:
		return fmt.Errorf("%v: want a constructor function, got nil", seam)
	case t.Kind() != reflect.Func:
		return fmt.Errorf("%v: want a constructor function, got a %v; wrap it: func() %v { return ... }", seam, t, seam)
	case reflect.ValueOf(constructor).IsNil():
		return fmt.Errorf("%v: the constructor is nil", seam)
	case t.IsVariadic():
		return fmt.Errorf("%v: %s is variadic; fx would skip those parameters, so wrap it in a function that passes them", seam, funcName(constructor))
	case t.NumOut() == 0 || t.NumOut() > 2 || isError(t.Out(0)) || t.NumOut() == 2 && !isError(t.Out(1)):
		return fmt.Errorf("%v: %s must return the part, or the part and an error", seam, funcName(constructor))
	case !t.Out(0).Implements(seam):
		return fmt.Errorf("%v: %s returns %v, which does not implement it: %s", seam, funcName(constructor), t.Out(0), missing(t.Out(0), seam))
	}
	return nil
}

// missing says what keeps t from implementing the seam. It does not look for
// the method: a program that asks reflection for methods keeps every method of
// every type, which is 5 MB of the agent. The compiler names it for nothing.
func missing(t, seam reflect.Type) string {
	if t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(seam) {
		return fmt.Sprintf("*%v does; use a pointer", t)
	}
	return fmt.Sprintf("add \"var x %v; var _ %v = x\" to your package, and the compiler names the method", t, seam)
}

// construct calls a constructor that checkConstructor has seen. Its error, and
// its panic, name it.
func construct(constructor any, args []reflect.Value) (part any, err error) {
	name := funcName(constructor)
	err = tasks.Contain(name, func() error {
		out := reflect.ValueOf(constructor).Call(args)
		if len(out) == 2 && !out[1].IsNil() {
			return fmt.Errorf("%s: %w", name, out[1].Interface().(error))
		}
		if isNil(out[0]) {
			return fmt.Errorf("%s returned nil", name)
		}
		part = out[0].Interface()
		return nil
	})
	return part, readablePanic(err)
}

// readablePanic drops the stack, as an error of New is read by people; the
// name says where to look.
func readablePanic(err error) error {
	var p *tasks.PanicError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: panic: %v", p.Task, p.Value)
	}
	return err
}

func isNil(v reflect.Value) bool {
	switch v.Kind() { // only these can be nil
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// makeFunc makes a func(in...) (out, error) for fx, which reads types.
func makeFunc(in []reflect.Type, out reflect.Type, body func(args []reflect.Value) (any, error)) any {
	errorType := reflect.TypeFor[error]()
	signature := reflect.FuncOf(in, []reflect.Type{out, errorType}, false)
	return reflect.MakeFunc(signature, func(args []reflect.Value) []reflect.Value {
		result, failure := reflect.New(out).Elem(), reflect.New(errorType).Elem()
		if v, err := body(args); err != nil {
			failure.Set(reflect.ValueOf(err))
		} else {
			result.Set(reflect.ValueOf(v))
		}
		return []reflect.Value{result, failure}
	}).Interface()
}

func parameters(fn any) []reflect.Type {
	t := reflect.TypeOf(fn)
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	return in
}

// funcName is how errors name a constructor: package and function.
func funcName(fn any) string {
	f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer())
	if f == nil {
		return reflect.TypeOf(fn).String()
	}
	name := f.Name()
	return name[strings.LastIndex(name, "/")+1:]
}
