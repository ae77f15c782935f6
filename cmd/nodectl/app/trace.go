package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"nodekit.dev/node/podactor"
)

// decodeTrace reads a trace of this version, whole or not at all.
func decodeTrace(name string, data []byte) (podactor.Trace, error) {
	var trace podactor.Trace
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return trace, fmt.Errorf("%s: not a trace: %w", name, err)
	}
	if head.Version != podactor.TraceVersion {
		return trace, fmt.Errorf("%s: a trace of version %d, but this nodectl replays version %d: use the nodectl that came with the agent", name, head.Version, podactor.TraceVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&trace); err != nil {
		return trace, fmt.Errorf("%s: %w: use the nodectl that came with the agent", name, err)
	}
	if len(trace.Entries) == 0 {
		return trace, errors.New(name + ": a trace without decisions")
	}
	return trace, nil
}
