package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// Input is all that Decide may look at. It is plain data: it marshals to JSON
// and back, so a recorded Input replays as a test.
type Input struct {
	Now  time.Time
	Want Want
	Seen Seen
	Mem  Memory
	// Busy holds the actions in flight by key. What Seen says about the thing
	// behind a busy key may already be wrong.
	Busy map[Key]Action
}

// Plan is what Decide wants done now.
type Plan struct {
	// Mem is the memory to hand back with the next Input.
	Mem Memory
	// Do are actions to start; each key occurs once and is not in Input.Busy.
	Do []Action
	// Cancel names actions in flight that should end early. They still report
	// an outcome, and their key stays busy until they did.
	Cancel []Key
	// Status is the status to publish. Conditions and times are stable: equal
	// worlds give equal statuses.
	Status corev1.PodStatus
	// Events are what a user should be told, once for as long as the cause
	// lasts: about decisions and about failed actions. What only the one who
	// runs an action knows (Pulled, Created, Started) is not among them.
	Events []Event
	// Probes are the runs whose probes are to be made from now until the next
	// plan, in the order of the spec.
	Probes []ProbedRun `json:",omitempty"`
	// Wake is when to decide again if nothing happens before; zero: never.
	Wake time.Time
	// LookSince asks for a look at the runtime that begins then or later, as what
	// was seen is too old for what is to be done next; zero: none is needed.
	LookSince time.Time
}

// Phase is where a pod is in its life. It only rises.
type Phase int8

// The phases, in order.
const (
	Queued    Phase = iota // known, not admitted; nothing of it on the node
	Preparing              // admitted: volumes, images and sandbox are under way
	Running                // a container was started
	Stopping               // containers are being stopped; none will start
	Cleaning               // no container runs; sandbox, volumes, cgroup go
	Finished               // nothing is left that the pod does not need any more
)

// StopReason says why a pod stops.
type StopReason string

// Why pods stop.
const (
	StopDeleted   StopReason = "Deleted"          // gone from its source: API deletion or manifest removed
	StopOrphaned  StopReason = "Orphaned"         // found in the runtime, wanted by nobody
	StopEvicted   StopReason = "Evicted"          // the node needs its resources
	StopShutdown  StopReason = "Shutdown"         // the node goes down
	StopRejected  StopReason = "Rejected"         // admission said no
	StopDeadline  StopReason = "DeadlineExceeded" // activeDeadlineSeconds is over
	StopCompleted StopReason = "Completed"        // all containers ended and none will start
)

// Leaves says that nothing of the pod is to be kept: containers, logs and
// directories go too. The other reasons keep dead containers until deletion.
func (r StopReason) Leaves() bool { return r == StopDeleted || r == StopOrphaned }

// Stop asks for the end of a pod, or records that Decide chose it.
type Stop struct {
	Reason StopReason
	// StatusReason and Message go to pod.status where the stop fails the pod,
	// such as "Evicted" and "The node was low on resource: memory.".
	StatusReason string
	Message      string
	// At is when the stop was asked for; zero: when Decide first sees it.
	At time.Time
	// Grace is the time between At and SIGKILL, preStop included. A container
	// gets at least Rules.MinimumGrace from the moment its stop begins. For
	// StopOrphaned it only counts where the containers' annotations tell none.
	Grace time.Duration
}

// KillAt is when the grace is over.
func (s Stop) KillAt() time.Time { return s.At.Add(s.Grace) }

// Want is what somebody wants of the pod.
type Want struct {
	UID       string
	Namespace string
	Name      string
	// Pod is the latest spec with defaults applied, nil for an orphan whose
	// manifest is gone. It is never changed in place.
	Pod *corev1.Pod
	// Static pods come from a file, a URL or Go, not from the API server.
	Static bool
	// Held keeps the pod in Queued: an older pod of the same UID or static
	// name is not Finished yet.
	Held bool
	// Stop is sticky; see Merge.
	Stop *Stop
	// Prior is the last status the API server has, for a restart without flap;
	// of a static pod, that of its mirror, which may become known later.
	Prior *corev1.PodStatus
	Rules Rules
}

// Rules are the node's settings that decisions depend on.
type Rules struct {
	// BackoffBase doubles per crash up to BackoffMax, and starts again after a
	// container ran for BackoffReset. Stock: 10 s, 300 s, 10 min.
	BackoffBase  time.Duration
	BackoffMax   time.Duration
	BackoffReset time.Duration
	// OrphanGrace is used where neither the spec nor the runtime's annotations
	// tell a grace period. Stock: 30 s.
	OrphanGrace time.Duration
	// MinimumGrace is the least time a container gets after its preStop hook.
	// Stock: 2 s.
	MinimumGrace time.Duration
	// KeepDead is how many dead containers of one name are kept for their
	// logs. Stock: 1.
	KeepDead int
	// HostIPs are the node's addresses, primary first.
	HostIPs []string
	// RuntimeName is the prefix of container IDs in statuses, as in
	// "containerd://ID". It is the name that the runtime's Version tells.
	RuntimeName string
	// RestartRules (gate ContainerRestartRules, Beta on) honours the
	// restartPolicy and restartPolicyRules of single containers;
	// RestartAllContainers (gate RestartAllContainersOnContainerExits) the
	// action of that name.
	RestartRules         bool
	RestartAllContainers bool
	// StopSignals (gate ContainerStopSignals, Alpha) tells the signals that end
	// containers in their statuses.
	StopSignals bool
	// ProbesAfterRestart (gate ChangeContainerStatusOnKubeletRestart, deprecated,
	// off) lets only the prober say that a container is started and ready, also
	// after a restart of the agent. Off: what the API server was told holds
	// until the prober has spoken.
	ProbesAfterRestart bool
}

// DefaultRules are the stock kubelet's.
func DefaultRules() Rules {
	return Rules{
		BackoffBase:          10 * time.Second,
		BackoffMax:           300 * time.Second,
		BackoffReset:         10 * time.Minute,
		OrphanGrace:          30 * time.Second,
		MinimumGrace:         2 * time.Second,
		KeepDead:             1,
		RestartRules:         true,
		RestartAllContainers: true,
	}
}

// Seen is what the world last said, replaced piece by piece as a whole.
type Seen struct {
	// Looked is false until the runtime was read once since the agent started.
	// Nothing is decided about containers before.
	Looked bool
	// LookedAt is when the look at Runtime began; zero: just now.
	LookedAt time.Time
	Runtime  runtime.Pod
	// NetworkReady is the runtime's word; host-network pods do without.
	NetworkReady bool
	// Admission is the verdict so far.
	Admission Admission
	// Prepared and Cgroup are true once RunHooksPrepare and EnsureCgroup
	// succeeded.
	Prepared bool
	Cgroup   bool
	// CgroupGone, CleanedUp and DirsGone are true once RemoveCgroup,
	// RunHooksCleanup and RemovePodDir succeeded after everything ended.
	CgroupGone bool
	CleanedUp  bool
	DirsGone   bool
	// StoppingDone is true once RunHooksStopping succeeded.
	StoppingDone bool
	// VolumesLooked is false until the mounts were read once since start.
	VolumesLooked bool
	// Mounted holds the volumes that are mounted now, by volume name.
	Mounted map[string]bool
	// Far holds volumes whose mount must still wait for something far away
	// (an attach, a missing driver): no sandbox until the volume is near.
	Far map[string]bool
	// Images holds what each container's image resolved to, by container name.
	Images map[string]Image
	// Probes holds the prober's word, by container name. A container without
	// an entry has no such probe.
	Probes map[string]Probe
	// Hooks holds the outcome of postStart hooks, by container ID.
	PostStart map[string]PostStart
	// NewsAt is when something outside the pod that it may wait for last changed,
	// such as a ConfigMap that it names.
	NewsAt time.Time
	// Failed holds the last failure of each key since its last success.
	Failed map[Key]Failure
}

// Verdict is where admission stands.
type Verdict string

// The verdicts.
const (
	VerdictNone   Verdict = ""       // not asked yet
	VerdictAdmit  Verdict = "Admit"  // allocated: the pod may start
	VerdictReject Verdict = "Reject" // the pod fails with Reason and Message, unless it runs already
	VerdictLater  Verdict = "Later"  // ask again at RetryAt; the pod waits
)

// Admission is the outcome of the Admit action.
type Admission struct {
	Verdict Verdict
	Reason  string
	Message string
	RetryAt time.Time
	// StopsRunning makes a Reject stop a pod that runs already, which is left
	// alone otherwise: for what would have it evicted, such as a NoExecute taint.
	StopsRunning bool `json:",omitempty"`
}

// Image is a pulled image.
type Image struct {
	// Spec is what was asked for; a changed spec needs a new pull.
	Spec string
	// Ref is what the runtime knows it by.
	Ref string
}

// Probe is what a prober last said of one container.
type Probe struct {
	ContainerID string
	// Started is nil without a startup probe, else its result so far.
	Started *bool
	// Ready is nil without a readiness probe, else its result so far.
	Ready *bool
	// Unhealthy asks for a restart: liveness or startup failed its threshold.
	Unhealthy bool
	Message   string
	// Grace is the probe's own terminationGracePeriodSeconds; nil: the pod's.
	Grace *time.Duration
}

// PostStart is how a postStart hook ended.
type PostStart struct {
	Done    bool
	Failed  bool
	Message string
}

// Failure is why the last action of a key failed.
type Failure struct {
	// Kind is the action that failed; several kinds share a key.
	Kind Kind
	// Reason in the stock kubelet's words, such as "ErrImagePull",
	// "CreateContainerConfigError" or "RunContainerError".
	Reason  string
	Message string
	At      time.Time
	// Began is when the action that failed was started.
	Began time.Time
	// RetryAt is when the action may be tried again.
	RetryAt time.Time
	// Count is how many times in a row it failed.
	Count int
	// Fatal means that trying again can not help (an invalid pod).
	Fatal bool
}

// Memory is what Decide remembers from one call to the next. It is safe to
// lose: after a restart it is zero, and Seen tells the rest.
type Memory struct {
	Phase Phase
	// Ending is why the pod ends, once that is decided. Sticky.
	Ending *Stop
	// EndingAt is when Ending was chosen: what was seen before that says too
	// little of what there is to take away.
	EndingAt time.Time
	// Disrupted is true once the node, not the user, asked for the end. Sticky.
	Disrupted bool
	// KillAt is when the grace of the whole pod is over; only falls.
	KillAt time.Time
	// StartTime is pod.status.startTime.
	StartTime time.Time
	// Containers by name, init containers included.
	Containers map[string]ContainerMemory
	// Status is the status last planned, for stable transition times.
	Status *corev1.PodStatus
	// Told holds the events already emitted whose cause still holds.
	Told map[string]bool
	// RestartAll is since when a RestartAllContainers is in progress.
	RestartAll *time.Time
	// Initialized is the ID of the sandbox in which the init containers were
	// done last.
	Initialized string
	// Asked holds the last action asked for of each key, so that a failure or
	// a success of a key can be told to its action.
	Asked map[Key]Asked
	// StoppedSandboxes holds the IDs of sandboxes that StopSandbox ended well
	// for, as long as the runtime shows them.
	StoppedSandboxes map[string]bool
}

// Asked is the last action of one key.
type Asked struct {
	Kind Kind
	// What it works on: an image, a container ID or a sandbox ID.
	What string `json:",omitempty"`
	At   time.Time
}

// ContainerMemory is what is remembered of one container name.
type ContainerMemory struct {
	// Restarts counts starts after the first, never falls. Ran is true once
	// there was a first.
	Restarts int32
	Ran      bool
	// Run is the newest run that was ever seen.
	Run Run
	// Last is the newest terminated state seen, and LastID its container.
	Last   *corev1.ContainerStateTerminated
	LastID string
	// Anew says that the runs so far do not count for what to start: all
	// containers are being restarted. It ends with the next run.
	Anew bool

	// Backoff is the current crash back-off; Until is when it is over.
	Backoff time.Duration
	Until   time.Time
	// For is the container ID that Backoff was computed for.
	For string
	// StartFailure is why the last start failed before the container ran. It
	// outlives the removal of what the start left behind.
	StartFailure *StartFailure
	// PulledFor is the restart count that the image was last pulled for.
	PulledFor int32

	// KillReason and KillMessage say why a stop was asked for the container
	// KillID; KillAt is when its grace is over, it only falls. FlightKillAt is
	// the same for the StopContainer that was issued last.
	KillID       string
	KillReason   string
	KillMessage  string
	KillAt       time.Time
	FlightKillAt time.Time

	// HookDue says that the next new run needs its postStart hook; HookID is
	// the container whose hook it is. Both are lost with the memory, and then
	// the hook counts as done.
	HookDue bool
	HookID  string
}

// Run names one run of a container.
type Run struct {
	ID        string
	SandboxID string
	Attempt   uint32
}

// StartFailure is a failed StartContainer.
type StartFailure struct {
	Failure
	// Image is what was to be started; another one is tried at once.
	Image string
	// InARow counts the failures since the last run.
	InARow int
}

// EventType is "Normal" or "Warning".
type EventType string

// The event types of the API.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// Event is something to tell the user about the pod.
type Event struct {
	Type    EventType
	Reason  string // stock words: "Killing", "BackOff", "FailedPostStartHook", ...
	Message string
	// Container is empty for events about the whole pod.
	Container string
}
