package placement

import (
	"time"

	"sandwich/runtime/phase"
)

// schedule runs a load as the scheduler does: chunks of one prompt after the other, and decode
// batches of all requests whose prompts are complete.
type schedule struct {
	load     Load
	forward  [phase.Count]Line
	handover time.Duration // from the end of a prompt to its first decode batch on another side
	now      time.Duration // end of the last decode batch
	left     []int         // tokens that each started request will still generate
	started  int           // requests with a complete prompt
	sum      time.Duration // of the latencies of the requests that ended
}

// alternate runs one forward at a time: a decode batch follows each chunk.
func (s *schedule) alternate() {
	for range s.load.Requests {
		for at := 0; at < s.load.Prompt; at += s.load.Chunk {
			s.now += s.forward[phase.Prefill].Of(min(s.load.Chunk, s.load.Prompt-at))
			if at+s.load.Chunk >= s.load.Prompt {
				s.now += s.handover
				s.start()
			}
			s.decode()
		}
	}
	for s.decode() {
	}
}

// overlap runs the phases on two sides at the same time.
func (s *schedule) overlap() {
	var prompt time.Duration // of one request
	for at := 0; at < s.load.Prompt; at += s.load.Chunk {
		prompt += s.forward[phase.Prefill].Of(min(s.load.Chunk, s.load.Prompt-at))
	}
	for {
		for s.started < s.load.Requests && time.Duration(s.started+1)*prompt+s.handover <= s.now {
			s.start()
		}
		if s.decode() {
			continue
		}
		if s.started == s.load.Requests {
			return
		}
		s.now = time.Duration(s.started+1)*prompt + s.handover
	}
}

// start records the end of the next request's prompt, which produces its first token.
func (s *schedule) start() {
	s.left[s.started] = s.load.Output - 1
	if s.load.Output == 1 {
		s.sum += s.now
	}
	s.started++
}

// decode runs a batch of all started requests and reports whether there was one.
func (s *schedule) decode() bool {
	rows := 0
	for _, n := range s.left[:s.started] {
		if n > 0 {
			rows++
		}
	}
	if rows == 0 {
		return false
	}
	s.now += s.forward[phase.Decode].Of(rows)
	for i, n := range s.left[:s.started] {
		if n > 0 {
			s.left[i]--
			if n == 1 {
				s.sum += s.now
			}
		}
	}
	return true
}
