package nodecert

import (
	"net/http"
	"time"
)

// refusals notes for how long the API server has refused the client
// certificate. A single 401 says little: an API server that starts, or a proxy
// before it, may give one.
type refusals struct {
	since time.Time // the first of the refusals in a row; zero: none
	told  bool      // one came when they had lasted long enough
}

// refusedFor is how long refusals must last until they count. One alone never
// does, however long ago it was: the API server may have been away since.
const refusedFor = time.Minute

// after returns what is known with one more answer.
func (r refusals) after(status int, now time.Time) refusals {
	switch {
	case status != http.StatusUnauthorized:
		if status == 0 || status >= http.StatusInternalServerError {
			return r // says nothing about the certificate
		}
		return refusals{}
	case r.since.IsZero():
		r.since = now
	}
	r.told = now.Sub(r.since) >= refusedFor
	return r
}
