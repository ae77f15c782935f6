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
	var hints []string
	collectHints(err, &hints)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		hints = append(hints, flagHint(strings.ReplaceAll(unknown.GetSpecifiedName(), "_", "-")))
	}
	return strings.Join(hints, "\n")
}

// collectHints asks an error and all that it wraps.
func collectHints(err error, hints *[]string) {
	if h, ok := err.(interface{ Hint() string }); ok {
		if hint := h.Hint(); hint != "" {
			*hints = append(*hints, hint)
		}
	}
	switch wrapped := err.(type) { //nolint:errorlint // the walk unwraps by itself
	case interface{ Unwrap() error }:
		if inner := wrapped.Unwrap(); inner != nil {
			collectHints(inner, hints)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapped.Unwrap() {
			collectHints(inner, hints)
		}
	}
}

func flagHint(name string) string {
	if hint := config.RemovedFlag(name); hint != "" {
		return "--" + name + ": " + hint
	}
	near := ""
	if flag := config.NearestFlag(name); flag != "" {
		near = " Did you mean --" + flag + "?"
	}
	return "--" + name + " is not a flag of this kubelet." + near + " See kubelet --help."
}

// placed adds where the fields that an error is about were set.
func placed(err error, loaded *config.Loaded) error {
	var places []string
	for _, field := range config.FieldsOf(err) {
		if where := loaded.Where(field); where != "" {
			places = append(places, field+" is set by "+where)
		}
	}
	return &placedError{error: err, places: strings.Join(places, "\n")}
}

type placedError struct {
	error
	places string
}

func (p *placedError) Unwrap() error { return p.error }
func (p *placedError) Hint() string  { return p.places }
