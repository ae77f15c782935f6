package reasoned

import "errors"

// NotFound asks any error whether a thing is known not to exist, as opposed to
// nobody being able to tell.
func NotFound(err error) bool {
	var n interface{ NotFound() bool }
	return errors.As(err, &n) && n.NotFound()
}

// Unreachable asks any error whether who knows could not be asked.
func Unreachable(err error) bool {
	var u interface{ Unreachable() bool }
	return errors.As(err, &u) && u.Unreachable()
}
