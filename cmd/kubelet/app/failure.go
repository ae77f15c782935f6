package app

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"nodekit.dev/cmd/kubelet/config"
)

// report prints why the command failed: the stock kubelet's line first, so
// that what watches for it finds it, then what to do where we know it.
func report(w io.Writer, format string, err error) {
	newLogger(w, format, 0).Error("command failed", "err", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintln(w, hint)
	}
}

// hintOf finds a sentence that tells the user what to do.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown flag: --"); ok {
		return flagHint(strings.ReplaceAll(name, "_", "-"))
	}
	return ""
}

func flagHint(name string) string {
	if hint := config.RemovedFlag(name); hint != "" {
		return "--" + name + ": " + hint
	}
	return "--" + name + " is not a flag of this kubelet. See kubelet --help; most of the stock kubelet's flags are fields of the --config file."
}
