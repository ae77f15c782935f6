package lifecycle

import "strconv"

// String is the phase's name, for logs.
func (p Phase) String() string {
	names := [...]string{"Queued", "Preparing", "Running", "Stopping", "Cleaning", "Finished"}
	if p < 0 || int(p) >= len(names) {
		return "Phase(" + strconv.Itoa(int(p)) + ")"
	}
	return names[p]
}
