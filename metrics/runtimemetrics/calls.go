//go:build !windows

package runtimemetrics

import "nodekit.dev/runtime/cri"

// Calls observes the client of the runtime. It is not there on Windows, where
// package cri does not build; call Called.
func (m *Metrics) Calls() cri.Observer {
	return cri.Observer{Called: func(call cri.Call) { m.Called(Call(call)) }}
}
