package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"sandwich/runtime/sched"
)

// Request is one arrival.
type Request struct {
	At     time.Duration // since the start of the trace
	Class  sched.Class
	Prompt int // tokens
	Output int // generated tokens, including the first
}

// Trace is a list of requests in the order of their arrival.
type Trace []Request

// Bounds of a trace file.
const (
	maxRequests = 1 << 20
	maxTokens   = 1 << 20
	maxLine     = 64 << 10
)

// record is a request as a line of JSON.
type record struct {
	At     float64 `json:"at"` // seconds
	Class  string  `json:"class"`
	Prompt int     `json:"prompt"`
	Output int     `json:"output"`
}

// Read reads a trace of JSON lines, {"at": 1.5, "class": "reactive", "prompt": 120, "output": 64},
// or of the same columns as CSV, with a header if they are in another order. The class is optional.
// Errors name the line.
func Read(in io.Reader) (Trace, error) {
	var t Trace
	parse := parseJSON
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if n == 1 && line[0] != '{' {
			var c columns
			if parse = c.parse; c.header(line) {
				continue
			}
		}
		r, err := parse(line)
		if err == nil && len(t) > 0 && r.At < t[len(t)-1].At {
			err = fmt.Errorf("it arrives before the previous request; sort the trace by \"at\"")
		}
		if err == nil && len(t) == maxRequests {
			err = fmt.Errorf("a trace has at most %d requests", maxRequests)
		}
		if err != nil {
			return nil, fmt.Errorf("trace line %d: %w", n, err)
		}
		t = append(t, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("the trace has no request")
	}
	return t, nil
}

func parseJSON(line []byte) (Request, error) {
	var r record
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Request{}, fmt.Errorf(`want {"at": seconds, "class": "reactive" or "proactive", "prompt": tokens, "output": tokens}: %w`, err)
	}
	return r.request()
}

// request checks a record and converts it.
func (r record) request() (Request, error) {
	out := Request{At: time.Duration(r.At * float64(time.Second)), Prompt: r.Prompt, Output: r.Output}
	switch r.Class {
	case "", sched.Reactive.String():
	case sched.Proactive.String():
		out.Class = sched.Proactive
	default:
		return out, fmt.Errorf("class %.40q is neither %s nor %s", r.Class, sched.Reactive, sched.Proactive)
	}
	switch {
	case !(r.At >= 0 && r.At < 1e8):
		return out, fmt.Errorf("at %g is not a valid time in seconds", r.At)
	case r.Prompt < 1 || r.Prompt > maxTokens || r.Output < 1 || r.Output > maxTokens:
		return out, fmt.Errorf("prompt %d and output %d must be 1 to %d tokens", r.Prompt, r.Output, maxTokens)
	}
	return out, nil
}

// Write writes a trace in the format of Read.
func (t Trace) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	for _, r := range t {
		if err := enc.Encode(record{r.At.Seconds(), r.Class.String(), r.Prompt, r.Output}); err != nil {
			return err
		}
	}
	return out.Flush()
}
