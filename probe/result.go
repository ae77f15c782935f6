package probe

import "fmt"

// String is the result in one word, as it is logged and saved.
func (r Result) String() string {
	switch r {
	case Unknown:
		return "unknown"
	case Success:
		return "success"
	case Warning:
		return "warning"
	case Failure:
		return "failure"
	}
	return fmt.Sprintf("result %d", int8(r))
}

// MarshalText writes String.
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Result) UnmarshalText(text []byte) error {
	for _, known := range []Result{Unknown, Success, Warning, Failure} {
		if known.String() == string(text) {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("%q is no result of a probe", text)
}
