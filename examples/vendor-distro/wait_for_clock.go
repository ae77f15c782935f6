package main

import (
	"context"
	"os"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/nodefx"
)

// clock lets pods wait, instead of failing them, until the clock is right.
type clock struct{ Site }

func waitForClock() nodefx.Option {
	return nodefx.AddAdmitter("clock", func(s Site) clock { return clock{s} })
}

// Admit implements node.Admitter.
func (c clock) Admit(context.Context, node.AdmitRequest) (lifecycle.Admission, error) {
	if _, err := os.Stat(c.ClockFile); c.ClockFile == "" || err == nil {
		return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
	}
	return lifecycle.Admission{
		Verdict: lifecycle.VerdictLater, Reason: "ClockNotSet", Message: "waiting for the time", RetryAt: time.Now().Add(time.Second),
	}, nil
}
