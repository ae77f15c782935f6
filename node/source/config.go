package source

import (
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Config is what all sources need.
type Config struct {
	// NodeName is this node's name; static pods get it behind their own, in
	// lower case.
	NodeName string
	// Adopter finds pods that already run under another UID; nil: none.
	Adopter Adopter
	// Refuse has a last word on each valid pod: its error makes the manifest an
	// invalid one. It must not block; nil: nothing is refused, see
	// [RefuseReferences] for what the stock kubelet does.
	Refuse func(*corev1.Pod) error
	// Log is nil for no logs.
	Log *slog.Logger
	// Observer's functions may be nil.
	Observer Observer
}

// check is what the API server would refuse, and what the agent does.
func (c Config) check(pod *corev1.Pod) error {
	if errs := Validate(pod); len(errs) > 0 {
		return errs.ToAggregate()
	}
	if c.Refuse == nil {
		return nil
	}
	return c.Refuse(pod)
}

// Observer is told about manifests. Its functions must not block and are
// called by one goroutine at a time.
type Observer struct {
	// Problem is called once when a problem appears or changes.
	Problem func(Problem)
	// Mended is called when a problem is over.
	Mended func(Problem)
}

// Reason is the class of a problem.
type Reason string

// The reasons.
const (
	ReasonUnreadable    Reason = "ManifestUnreadable"    // a file that can not be read
	ReasonTooLarge      Reason = "ManifestTooLarge"      // more than MaxManifest
	ReasonInvalid       Reason = "InvalidManifest"       // does not parse, or the API would refuse the pod
	ReasonUnknownFields Reason = "UnknownManifestFields" // ignored; the pod runs without them
	ReasonDuplicate     Reason = "DuplicatePod"          // another manifest has the pod's name or UID
	ReasonUnreachable   Reason = "SourceUnreachable"     // the directory or URL as a whole
	ReasonNotAdopted    Reason = "RunningPodsUnknown"    // the Adopter failed: nothing is sent until it answers
)

// Problem is something wrong with a source or one of its manifests, for an
// event record.
type Problem struct {
	Source string
	// Location is the file or URL, and for one pod of a list its name too.
	Location string
	Reason   Reason
	Message  string
	At       time.Time
	// Pod is the pod that runs on in spite of it; nil: none.
	Pod *corev1.Pod
}

func (c Config) withDefaults() (Config, error) {
	if c.NodeName == "" {
		return c, errors.New("source: no node name")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// checkName: a source's name becomes the value of an annotation and a part of
// log lines.
func checkName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return errors.New("source: name " + name + ": " + problems[0])
	}
	return nil
}
