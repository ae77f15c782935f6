package nodelogs

import (
	"errors"
	"fmt"
	"net/url"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
)

// The stock kubelet's limits on a query.
const (
	maxTail          = 100000
	maxServices      = 4
	maxServiceLength = 256
)

// query is what a log query asks for.
type query struct {
	services []string
	files    []string
	options
}

// options go with services only.
type options struct {
	since, until *time.Time
	tail, boot   *int
	pattern      string
}

func (o options) empty() bool {
	return o.since == nil && o.until == nil && o.tail == nil && o.boot == nil && o.pattern == ""
}

// parse reads a query; nil without an error: the request is none.
func parse(values url.Values) (*query, error) {
	var q query
	var errs []error
	names, asked := values["query"]
	for _, name := range names {
		switch {
		case strings.ContainsAny(name, `/\`): // a file; those without a slash are tried as services first
			q.files = append(q.files, name)
		case strings.TrimSpace(name) != "":
			q.services = append(q.services, name)
		}
	}
	if asked && len(q.files)+len(q.services) == 0 {
		errs = append(errs, fmt.Errorf("query: Invalid value: %q: may not be empty", names))
	}
	for _, field := range []struct {
		name string
		read func(text string) error
	}{
		{"sinceTime", moment(&q.since)},
		{"untilTime", moment(&q.until)},
		{"boot", number(&q.boot)},
		{"tailLines", number(&q.tail)},
	} {
		if text := values.Get(field.name); text != "" {
			if err := field.read(text); err != nil {
				errs = append(errs, fmt.Errorf("%s: Invalid value: %q: %w", field.name, text, err))
			}
		}
	}
	q.pattern = values.Get("pattern")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if !asked && q.empty() {
		return nil, nil
	}
	return &q, nil
}

func moment(into **time.Time) func(string) error {
	return func(text string) error {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return errors.New("invalid time format")
		}
		*into = &at
		return nil
	}
}

func number(into **int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		*into = &n
		return nil
	}
}

// validate says what is wrong with a query that could be read.
func (q *query) validate() error {
	return errors.Join(append(q.validateNames(), q.options.validate()...)...)
}

func (q *query) validateNames() (errs []error) {
	for _, s := range q.services {
		if err := safeService(s); err != nil {
			errs = append(errs, fmt.Errorf("query: Invalid value: %q: %w", s, err))
		}
	}
	if len(q.services) > maxServices {
		errs = append(errs, fmt.Errorf("query: Too many: %d: must have at most %d items", len(q.services), maxServices))
	}
	switch {
	case len(q.files)+len(q.services) == 0:
		errs = append(errs, errors.New("query: Required value: cannot be empty with options"))
	case len(q.files) > 0 && len(q.services) > 0:
		errs = append(errs, fmt.Errorf("query: Invalid value: %q: cannot specify a file and service", append(q.files, q.services...)))
	case len(q.files) > 1:
		errs = append(errs, fmt.Errorf("query: Invalid value: %q: cannot specify more than one file", q.files))
	case len(q.files) == 1 && !q.empty():
		errs = append(errs, fmt.Errorf("query: Invalid value: %q: cannot specify file with options", q.files))
	}
	return errs
}

func (o options) validate() (errs []error) {
	if o.since != nil && o.until != nil && o.since.After(*o.until) {
		errs = append(errs, fmt.Errorf("untilTime: Invalid value: %v: must be after `sinceTime`", o.until.Format(time.RFC3339)))
	}
	if o.boot != nil && *o.boot > 0 {
		errs = append(errs, fmt.Errorf("boot: Invalid value: %d: must be less than 1", *o.boot))
	}
	if o.tail != nil && (*o.tail < 0 || *o.tail > maxTail) {
		errs = append(errs, fmt.Errorf("tailLines: Invalid value: %d: must be between 0 and %d, inclusive", *o.tail, maxTail))
	}
	if _, err := syntax.Parse(o.pattern, syntax.Perl); err != nil {
		errs = append(errs, fmt.Errorf("pattern: Invalid value: %q: %w", o.pattern, err))
	}
	return errs
}

// safeService lets through what no command takes for anything but a name.
func safeService(name string) error {
	if len(name) > maxServiceLength {
		return fmt.Errorf("length must be less than %d", maxServiceLength)
	}
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("-_.:@", c) {
			return errors.New("input contains unsupported characters")
		}
	}
	return nil
}

// journalTime is how journalctl is told a moment; it takes it for UTC.
const journalTime = "2006-01-02 15:04:05"

// journalArgs are the arguments of journalctl. Each value is one word with its
// option, so that it is never taken for another option.
func (q *query) journalArgs(services []string) []string {
	args := []string{"--utc", "--no-pager", "--output=short-precise"}
	if q.since != nil {
		args = append(args, "--since="+q.since.UTC().Format(journalTime)+" UTC")
	}
	if q.until != nil {
		args = append(args, "--until="+q.until.UTC().Format(journalTime)+" UTC")
	}
	if q.tail != nil {
		args = append(args, fmt.Sprintf("--lines=%d", *q.tail))
	}
	for _, s := range services {
		args = append(args, "--unit="+s)
	}
	if q.pattern != "" {
		args = append(args, "--grep="+q.pattern)
	}
	if q.boot != nil {
		args = append(args, fmt.Sprintf("--boot=%d", *q.boot))
	}
	return args
}
