// Demo is `make run`: on a fresh Debian machine, as root, it brings what is
// missing, starts a private containerd and an agent on the sample manifests,
// shows the pods until all are as they should be, fetches the web page, and
// runs until Ctrl-C. Then it removes all that it made.
//
// RUN_ONCE=1 ends after the check with exit code 0, or 1 when a pod is not as
// it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"nodekit.dev/test/integration/testbed"
)

const (
	// checkTimeout is how long the pods may take to be as they should be.
	checkTimeout = 2 * time.Minute
	// stopTimeout is how long all of the cleaning up may take.
	stopTimeout = time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder := flag.String("manifests", "../../examples/manifests", "folder of the pods to run")
	flag.Parse()
	err := run(ctx, *folder, os.Getenv("RUN_ONCE") != "")
	if err != nil {
		fmt.Fprintln(os.Stderr, "\n"+err.Error())
		os.Exit(1)
	}
}

// run does all of it. Being interrupted is no error; what can not be removed is.
func run(ctx context.Context, folder string, once bool) (err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return err
	}
	wanted, err := readManifests(folder)
	if err != nil {
		return err
	}
	d := &demo{manifests: folder, wanted: wanted, table: newTable(os.Stdout)}
	defer func() {
		if ctx.Err() != nil {
			err = nil // whatever failed, failed because of that
		}
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, d.stop(undo))
	}()
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.check(ctx); err != nil {
		return fmt.Errorf("%w\n\nThe agent's log ends with:\n%s", err, d.agent.Log(40))
	}
	if once {
		return nil
	}
	return d.showUntilDone(ctx)
}

// step prints what is being done, and how long it took.
func step[T any](what string, do func() (T, error)) (T, error) {
	fmt.Printf("%-48s", what+" ...")
	began := time.Now()
	result, err := do()
	if err != nil {
		fmt.Println(" failed")
		return result, fmt.Errorf("%s: %w", what, err)
	}
	fmt.Printf(" %6.1f s\n", time.Since(began).Seconds())
	return result, nil
}

// demo is what runs.
type demo struct {
	manifests string
	wanted    []expectation
	table     *table
	bed       *testbed.Bed
	agent     *testbed.Agent
}

func (d *demo) start(ctx context.Context) (err error) {
	_, err = step("Looking for containerd, runc and CNI plugins", func() (any, error) {
		return nil, testbed.Install(ctx)
	})
	if err != nil {
		return err
	}
	program, err := step("Building cmd/kubelet", func() (string, error) { return testbed.BuildAgent(ctx) })
	if err != nil {
		return err
	}
	d.bed, err = step("Starting a private containerd and a registry", func() (*testbed.Bed, error) {
		return testbed.Start(ctx, testbed.Options{})
	})
	if err != nil {
		return err
	}
	d.agent, err = step("Starting the agent on "+filepath.Base(d.manifests), func() (*testbed.Agent, error) {
		return testbed.StartAgent(ctx, d.bed, testbed.AgentOptions{Manifests: d.manifests, Program: program})
	})
	return err
}

// check shows the pods until all are as they should be, and the web page.
func (d *demo) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	fmt.Println()
	err := testbed.Eventually(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		if !d.agent.Alive() {
			cancel()
			return errors.New("the agent ended by itself")
		}
		return d.look(ctx)
	})
	if err != nil {
		return err
	}
	fmt.Println("\nAll pods are as they should be.")
	return d.fetchPage(ctx)
}

// look shows the pods once and says which is not as it should be.
func (d *demo) look(ctx context.Context) error {
	pods, err := d.agent.Pods(ctx)
	if err != nil {
		return err
	}
	d.table.show(pods)
	return compare(d.wanted, pods)
}

func (d *demo) fetchPage(ctx context.Context) error {
	pods, err := d.agent.Pods(ctx)
	if err != nil {
		return err
	}
	web, found := findPod(pods, "default", "web")
	if !found {
		return errors.New("there is no pod web")
	}
	url := fmt.Sprintf("http://%s:8080/", web.Status.PodIP)
	page, err := testbed.Fetch(ctx, url)
	if err != nil {
		return err
	}
	fmt.Printf("\n$ curl %s\n%s", url, page)
	return nil
}

// showUntilDone keeps the table fresh until Ctrl-C.
func (d *demo) showUntilDone(ctx context.Context) error {
	fmt.Printf("\nIt runs until Ctrl-C. Edit %s and see what happens;\nthe agent logs to %s.\n\n", d.manifests, d.agent.LogFile)
	d.table.startAnew()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		pods, err := d.agent.Pods(ctx)
		if !d.agent.Alive() {
			return fmt.Errorf("the agent ended by itself:\n%s", d.agent.Log(40))
		}
		if err == nil { // else it is busy: the next look will do
			d.table.show(pods)
		}
	}
}

// stop ends the agent and removes the bed with all pods.
func (d *demo) stop(ctx context.Context) error {
	if d.bed == nil {
		return nil
	}
	fmt.Println()
	_, err := step("Removing all that was made", func() (any, error) {
		var err error
		if d.agent != nil {
			err = d.agent.Stop(ctx)
		}
		return nil, errors.Join(err, d.bed.Stop(ctx))
	})
	return err
}
