package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	nodectl "nodekit.dev/cmd/nodectl/app"
	"nodekit.dev/runtime/runtimetest"
)

const (
	patience = 20 * time.Second
	pollEach = 20 * time.Millisecond
)

// poll calls done until it is content.
func poll(done func(ctx context.Context) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(pollEach)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %v", patience)
		}
	}
	return nil
}

// await runs nodectl until its output is as wanted, and leaves it, blotted, as
// the standard output of the command.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || args[1] != "nodectl" {
		ts.Fatalf("usage: [!] await REGEXP nodectl ARGS...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	argv := append(nodectlFlags(ts.Getenv("WORK")), args[2:]...)
	var last string
	err = poll(func(ctx context.Context) bool {
		var out, errs bytes.Buffer
		code := nodectl.Run(ctx, argv, &out, &errs)
		if ctx.Err() == nil {
			last = out.String() + errs.String()
		}
		return code == 0 && want.Match(out.Bytes()) != neg
	})
	if err != nil {
		ts.Fatalf("%v; last output:\n%s", err, last)
	}
	fmt.Fprint(ts.Stdout(), blot(last))
}

// blotFile blots out what differs in a file, or in stdout or stderr, and leaves
// the result as the standard output of the command.
func blotFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: blot FILE|stdout|stderr")
	}
	text := ts.ReadFile(args[0])
	fmt.Fprint(ts.Stdout(), strings.ReplaceAll(blot(text), ts.Getenv("WORK"), "$WORK"))
}

// blot hides what differs from run to run without moving what stands beside it.
func blot(text string) string {
	for _, b := range []struct{ pattern, by string }{
		{`(?m)^\d\d:\d\d:\d\d\.\d{3}`, "TIME"},                               // of a decision
		{`(?m)^(\s*\d+  )\d\d:\d\d:\d\d\.\d{3}`, "${1}TIME"},                 // of a replay
		{`(?m)^[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+?):\d+\]`, "LOG $1]"}, // klog's header
		{`\b\d{1,2}s {2,}`, "AGE  "},                                         // a column as wide as its header
		{`(?m)\b(wake in|after|within) \d[\w.]*$`, "$1 SOME-TIME"},           // measured
		{`\b(sandbox|container)-\d+\b`, "$1-N"},                              // made in any order
		{`sha256:[0-9a-f]{64}`, "sha256:DIGEST"},                             //
		{`\bv1\.37\.2\+nodekit\.[\w.-]+`, "v1.37.2+nodekit.VERSION"},         //
		{`10\.88\.\d+\.\d+\b`, "POD-IP"},                                     //
	} {
		text = regexp.MustCompile(b.pattern).ReplaceAllString(text, b.by)
	}
	return text
}

// world steers and questions the runtime.
func world(ts *testscript.TestScript, neg bool, args []string) {
	w, ok := ts.Value(worldKey{}).(*runtimetest.World)
	if !ok || neg || len(args) == 0 {
		ts.Fatalf("usage: world behave|calls|env|empty|down|up")
	}
	switch args[0] {
	case "behave":
		b, err := behaviour(args[2:])
		ts.Check(err)
		w.Script(args[1], b)
	case "calls":
		want, err := strconv.Atoi(args[2])
		ts.Check(err)
		if got := w.Calls(runtimetest.Method(args[1])); got != want {
			ts.Fatalf("the runtime got %d calls of %s, want %d", got, args[1], want)
		}
	case "env":
		name, value, _ := strings.Cut(args[2], "=")
		got, err := variable(w, args[1], name)
		ts.Check(err)
		if got != value {
			ts.Fatalf("container %s has %s=%q, want %q", args[1], name, got, value)
		}
	case "empty":
		ts.Check(poll(func(ctx context.Context) bool {
			pods, err := w.ListPods(ctx)
			return err == nil && len(pods) == 0
		}))
	case "down":
		w.Down()
	case "up":
		ts.Check(w.Up())
	default:
		ts.Fatalf("unknown: world %s", args[0])
	}
}

// variable is one of a container's environment, by the container's name.
func variable(w *runtimetest.World, container, name string) (string, error) {
	pods, err := w.ListPods(context.Background())
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if c.Name != container {
				continue
			}
			cfg, _ := w.ContainerConfig(c.ID)
			for _, v := range cfg.Env {
				if v.Name == name {
					return v.Value, nil
				}
			}
		}
	}
	return "", err
}

func behaviour(args []string) (b runtimetest.Behaviour, err error) {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "run":
			b.RunFor, err = time.ParseDuration(value)
		case "exit":
			var code int
			code, err = strconv.Atoi(value)
			b.ExitCode = int32(code)
			if b.RunFor == 0 {
				b.RunFor = runtimetest.AtOnce
			}
		default:
			err = errors.New("unknown: " + arg)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}
