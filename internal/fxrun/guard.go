package fxrun

import (
	"runtime"
	"strings"

	"go.uber.org/fx"
)

// Guard wraps fx's lifecycle so that the hooks which vendors append by hand
// get the same budget, and so that one that hangs or panics does not keep the
// others from being called.
func (r *Runner) Guard(lc fx.Lifecycle) fx.Lifecycle { return &guarded{lc: lc, runner: r} }

type guarded struct {
	lc     fx.Lifecycle
	runner *Runner
}

// unguarded is for hooks that guard themselves under a better name.
func unguarded(lc fx.Lifecycle) fx.Lifecycle {
	if g, ok := lc.(*guarded); ok {
		return g.lc
	}
	return lc
}

// Append implements [fx.Lifecycle]. In errors, a hook is named after the
// function that appends it.
func (g *guarded) Append(h fx.Hook) {
	g.lc.Append(g.runner.hook("hook of "+appender(), h.OnStart, h.OnStop))
}

// appender is the package and function that called Append.
func appender() string {
	pcs := make([]uintptr, 1)
	runtime.Callers(3, pcs) // without Callers, appender and Append
	frame, _ := runtime.CallersFrames(pcs).Next()
	return frame.Function[strings.LastIndex(frame.Function, "/")+1:]
}
