package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
	"nodekit.dev/node/server"
)

func (e *env) pod(cmd *cobra.Command, args []string) error {
	line, err := e.find(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	if e.output == outputJSON {
		body, err := e.client().get(cmd.Context(), tracePath(line.UID))
		if err != nil {
			return err
		}
		return e.printJSON(body)
	}
	status, err := e.status(cmd.Context(), line.UID)
	if err != nil {
		return err
	}
	var trace podactor.Trace
	if err := e.client().getJSON(cmd.Context(), tracePath(line.UID), &trace); err != nil {
		return err
	}
	if err := e.summary(line, status); err != nil {
		return err
	}
	e.history(trace)
	return nil
}

// status is the pod's status as the agent would tell an API server.
func (e *env) status(ctx context.Context, uid string) (corev1.PodStatus, error) {
	var list corev1.PodList
	if err := e.client().getJSON(ctx, "/pods", &list); err != nil {
		return corev1.PodStatus{}, err
	}
	for _, pod := range list.Items {
		if string(pod.UID) == uid {
			return pod.Status, nil
		}
	}
	return corev1.PodStatus{}, fmt.Errorf("the pod %s has just gone", uid)
}

func (e *env) summary(line server.PodLine, status corev1.PodStatus) error {
	facts := newTable(e, "Pod", line.Namespace+"/"+line.Name)
	facts.row("UID", line.UID)
	facts.row("Source", line.Source)
	facts.row("Machine", machine(line))
	facts.row("Phase", strings.TrimSpace(string(status.Phase)+" "+status.Reason))
	if status.Message != "" {
		facts.row("Message", oneLine(status.Message))
	}
	facts.row("IPs", strings.Join(line.IPs, ", "))
	for _, c := range status.Conditions {
		facts.row(string(c.Type), strings.TrimSpace(string(c.Status)+" "+c.Reason))
	}
	if err := facts.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(e.out)
	return e.containers(status)
}

func (e *env) containers(status corev1.PodStatus) error {
	containers := newTable(e, "CONTAINER", "STATE", "READY", "RESTARTS", "LAST END")
	for _, group := range []struct {
		kind string
		of   []corev1.ContainerStatus
	}{{" (init)", status.InitContainerStatuses}, {"", status.ContainerStatuses}, {" (ephemeral)", status.EphemeralContainerStatuses}} {
		for _, c := range group.of {
			containers.row(c.Name+group.kind, stateOf(c.State), strconv.FormatBool(c.Ready), strconv.Itoa(int(c.RestartCount)), stateOf(c.LastTerminationState))
		}
	}
	return containers.Flush()
}

// stateOf is a container's state in a few words; "" where it has none.
func stateOf(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil:
		return strings.TrimSpace("waiting " + s.Waiting.Reason)
	case s.Terminated != nil:
		return strings.TrimSpace("ended with " + strconv.Itoa(int(s.Terminated.ExitCode)) + " " + s.Terminated.Reason)
	}
	return ""
}
