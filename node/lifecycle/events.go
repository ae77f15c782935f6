package lifecycle

import "strings"

// tell emits an event once, as long as its cause lasts: a cause that is not
// told of again in the next plan is forgotten.
func (d *decision) tell(cause string, e Event) {
	if d.told[cause] {
		return
	}
	d.told[cause] = true
	if !d.in.Mem.Told[cause] {
		d.plan.Events = append(d.plan.Events, e)
	}
}

// tellFailures emits one event for each failure of an action that users look
// for. A failure that comes again at another time is told again.
func (d *decision) tellFailures() {
	for _, key := range sortedKeys(d.in.Seen.Failed) {
		f := d.in.Seen.Failed[key]
		reason, message := "", f.Message
		container := ""
		switch {
		case strings.HasPrefix(string(key), keyVolume):
			reason = f.Reason
		case strings.HasPrefix(string(key), keyImage):
			reason, container = "Failed", key.Object()
			if c := d.named(container); c != nil && c.spec != nil {
				message = `Failed to pull image "` + c.spec.Image + `": ` + f.Message
			}
		case strings.HasPrefix(string(key), keyCont):
			reason, container, message = "Failed", key.Object(), "Error: "+f.Message
			if d.mem.Asked[key].Kind != StartContainer {
				reason, message = "FailedKillPod", "error killing container: "+f.Message
			}
		case key == KeySandbox, key == KeyCgroup, key == KeyHooks:
			reason = f.Reason
		default:
			continue
		}
		d.tell("Failed/"+string(key)+"/"+f.At.UTC().Format("20060102T150405.000000000"), Event{
			Type: EventWarning, Reason: reason, Message: message, Container: container,
		})
	}
}

func (d *decision) named(name string) *container {
	for _, c := range d.containers {
		if c.name == name {
			return c
		}
	}
	return nil
}
