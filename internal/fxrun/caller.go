package fxrun

import (
	"context"
	"reflect"
	"runtime"
)

// callerOf names a hook by the function that it is.
func callerOf(hooks ...func(context.Context) error) string {
	for _, h := range hooks {
		if h == nil {
			continue
		}
		if f := runtime.FuncForPC(reflect.ValueOf(h).Pointer()); f != nil {
			return f.Name()
		}
	}
	return "hook"
}
