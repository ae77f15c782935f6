package logs

import "time"

const (
	// firstLook is when a log that was quiet is looked at after it grew.
	firstLook = 100 * time.Millisecond
	// soonest bounds how often one log is looked at.
	soonest = 50 * time.Millisecond
	// latest is when a log that grows slowly is looked at: its pace may change.
	latest = time.Second
)

// nextLook says when to look again at a log that grew by that much in that
// time: half of the time in which it would reach the limit at this pace, so
// that it is caught near the limit without an event per write.
func nextLook(size, grown, limit int64, over time.Duration) time.Duration {
	if grown <= 0 || over <= 0 {
		return latest
	}
	left := float64(max(0, limit-size))
	wait := time.Duration(min(float64(latest), left/float64(grown)*float64(over)/2))
	return max(soonest, wait)
}
