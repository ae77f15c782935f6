package lifecycle

import "time"

// longest is a wait that nobody sees the end of, and that sums of a few of
// still fit a time.Duration.
const longest = 50 * 365 * 24 * time.Hour

// Seconds turns a number of seconds from a spec or an annotation into a
// duration between 0 and 50 years: what is longer would wrap around, and turn
// "never kill" into "kill now".
func Seconds(s int64) time.Duration {
	switch {
	case s <= 0:
		return 0
	case s >= int64(longest/time.Second):
		return longest
	}
	return time.Duration(s) * time.Second
}
