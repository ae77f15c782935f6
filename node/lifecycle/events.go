package lifecycle

import "strings"

// tell emits events once, as long as their cause lasts: a cause that is not
// told of again in the next plan is forgotten.
func (d *decision) tell(cause string, events ...Event) {
	if d.told[cause] {
		return
	}
	d.told[cause] = true
	if !d.in.Mem.Told[cause] {
		d.plan.Events = append(d.plan.Events, events...)
	}
}

// tellFailures emits the events of each failure of an action that users look
// for. A failure that comes again at another time is told again.
func (d *decision) tellFailures() {
	for _, key := range sortedKeys(d.in.Seen.Failed) {
		f := d.in.Seen.Failed[key]
		cause := "Failed/" + string(key) + "/" + f.At.UTC().Format("20060102T150405.000000000")
		reason, message := "", f.Message
		container := ""
		switch {
		case strings.HasPrefix(string(key), keyVolume):
			if image, pull := d.volumePull(key.Object(), f); pull {
				d.tell(cause, d.volumePullEvents(key.Object(), image, f)...)
				continue
			}
			reason = f.Reason
		case strings.HasPrefix(string(key), keyImage):
			d.tell(cause, d.pullFailureEvents(key.Object(), f)...)
			continue
		case strings.HasPrefix(string(key), keyCont):
			reason, container, message = "Failed", key.Object(), "Error: "+f.Message
			if f.Kind != StartContainer {
				reason, message = "FailedKillPod", "error killing container: "+f.Message
			}
		case key == KeySandbox && f.Kind == RunSandbox:
			reason, message = f.Reason, "Failed to create pod sandbox: "+f.Message
		case key == KeySandbox, key == KeyCgroup, key == KeyHooks:
			reason = f.Reason
		default:
			continue
		}
		d.tell(cause, Event{
			Type: EventWarning, Reason: reason, Message: message, Container: container,
		})
	}
}

// pullFailureEvents are what happened to the image, in the stock kubelet's
// words, and that the container can not start because of it. The reasons of
// events are not those of the container's status.
func (d *decision) pullFailureEvents(container string, f Failure) []Event {
	image := d.mem.Asked[KeyImage(container)].What
	if c := d.named(container); image == "" && c != nil && c.spec != nil {
		image = c.spec.Image
	}
	return []Event{pullEvent(container, image, f), noStart(container, f.Reason)}
}

// pullEvent is what happened to an image; container empty: it is of a volume.
func pullEvent(container, image string, f Failure) Event {
	what := Event{Type: EventWarning, Reason: "Failed", Message: f.Message, Container: container}
	switch f.Reason {
	case "InvalidImageName", "ImageInspectError":
		what.Reason = "InspectFailed"
	case reasonImageNeverPull:
		what.Reason = reasonImageNeverPull
	case reasonImagePullBackOff:
		what.Type, what.Reason, what.Message = EventNormal, "BackOff", backoffPullMessage(image)
	default:
		what.Message = `Failed to pull image "` + image + `": ` + f.Message
	}
	return what
}

// noStart says that a container can not start, and the reason in its status.
func noStart(container, reason string) Event {
	return Event{Type: EventWarning, Reason: "Failed", Message: "Error: " + reason, Container: container}
}

func (d *decision) named(name string) *container {
	for _, c := range d.containers {
		if c.name == name {
			return c
		}
	}
	return nil
}
