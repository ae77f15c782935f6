package token

import "time"

const (
	maxAge    = 24 * time.Hour
	maxJitter = 10 * time.Second
)

// refreshAt is when a token of this life is asked for again: after 80 % of it
// or 24 hours, and up to ten seconds earlier by a random number from 0 to 1,
// so that the pods of a node do not all ask at once.
func refreshAt(received time.Time, life time.Duration, random float64) time.Time {
	age := min(life*8/10, maxAge) - time.Duration(random*float64(maxJitter))
	return received.Add(max(0, age))
}
