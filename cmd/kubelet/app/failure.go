package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
)

// report prints why the command failed: the stock kubelet's line first, so
// that what watches for it finds it, then what to do where we know it.
func report(sink *logSink, format string, err error) {
	log := newLogger(sink, format, 0)
	log.Error("command failed", "err", err)
	hint := hintOf(err)
	switch {
	case hint == "":
	case format == formatJSON:
		log.Error("what to do", "hint", hint)
	default:
		fmt.Fprintln(sink, hint)
	}
}

// hintOf finds a sentence that tells the user what to do.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		return flagHint(strings.ReplaceAll(unknown.GetSpecifiedName(), "_", "-"))
	}
	return ""
}

func flagHint(name string) string {
	if hint := config.RemovedFlag(name); hint != "" {
		return "--" + name + ": " + hint
	}
	if field := config.FieldOfFlag(name); field != "" {
		return "--" + name + " is not a flag of this kubelet: set " + field + " in the --config file."
	}
	if needsAPIServer(name) {
		return "--" + name + ": nodekit has no client of the API server yet (docs/scope.md). Remove the flag to run static pods only."
	}
	return "--" + name + " is not a flag of this kubelet. See kubelet --help; most of the stock kubelet's flags are fields of the --config file."
}

// needsAPIServer knows the stock flags that only mean something in a cluster
// and have no field in the configuration file.
func needsAPIServer(name string) bool {
	switch name {
	case "kubeconfig", "bootstrap-kubeconfig", "cert-dir", "cloud-provider", "node-labels", "register-schedulable":
		return true
	}
	return false
}
