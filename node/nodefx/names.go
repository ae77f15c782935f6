package nodefx

import (
	"reflect"
	"runtime"
	"strings"
)

// funcName is how errors name a constructor: package and function.
func funcName(fn any) string {
	f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer())
	if f == nil {
		return reflect.TypeOf(fn).String()
	}
	name := f.Name()
	return name[strings.LastIndex(name, "/")+1:]
}
