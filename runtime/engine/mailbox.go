package engine

import (
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// step is one drawn token on its way to the request's goroutine.
type step struct {
	id      int32
	at      time.Time // when it was drawn
	special bool      // not part of the text: an end-of-generation token
	prompt  bool      // of the prompt
	logprob float32
	top     []api.TokenLogprob
}

// ending says why a job's tokens end.
type ending struct {
	reason api.Finish
	err    error
}

// mailbox carries a job's tokens from the loop to the goroutine that asked for them, so that a slow
// client never holds the loop up. It holds at most as many as the request may generate.
type mailbox struct {
	mu    sync.Mutex
	steps []step
	spare []step
	end   *ending
	read  int           // positions of the prompt that are computed
	ready chan struct{} // capacity 1
	stop  func()        // called when the tokens end; may be nil
}

// onEnd has stop called when the tokens end, at once where they did.
func (m *mailbox) onEnd(stop func()) {
	m.mu.Lock()
	m.stop = stop
	over := m.end != nil
	m.mu.Unlock()
	if over {
		stop()
	}
}

// tell says how far the prompt is.
func (m *mailbox) tell(read int) {
	m.mu.Lock()
	m.read = read
	m.mu.Unlock()
	m.ring()
}

func (m *mailbox) told() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read
}

func (m *mailbox) put(s step) {
	m.mu.Lock()
	m.steps = append(m.steps, s)
	m.mu.Unlock()
	m.ring()
}

func (m *mailbox) close(reason api.Finish, err error) {
	m.mu.Lock()
	if m.end == nil {
		m.end = &ending{reason, err}
	}
	stop := m.stop
	m.mu.Unlock()
	if stop != nil {
		stop()
	}
	m.ring()
}

func (m *mailbox) ring() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take empties the mailbox; the slice is valid until the next take but one.
func (m *mailbox) take() ([]step, *ending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.steps
	m.steps, m.spare = m.spare[:0], out
	return out, m.end
}

// transcript turns tokens into text: whole runes, held back where a stop string may begin.
type transcript struct {
	stream *tokenizer.Stream
	stop   *stopper
	pieces *tokenizer.Tokenizer // names tokens where their log probabilities are wanted
}

func newTranscript(t *tokenizer.Tokenizer, r *api.Request) *transcript {
	out := &transcript{stop: newStopper(r.Stop)}
	if t != nil {
		out.stream = t.NewStream()
		out.stream.Special = r.Control
	}
	if r.Logprobs {
		out.pieces = t
	}
	return out
}

func (t *transcript) push(s step) (api.Token, bool) {
	out := api.Token{TokenLogprob: api.TokenLogprob{ID: s.id, Logprob: s.logprob}, Top: s.top, Prompt: s.prompt}
	if t.pieces != nil {
		out.Piece = string(t.pieces.Piece(s.id))
		for i := range s.top {
			s.top[i].Piece = string(t.pieces.Piece(s.top[i].ID))
		}
	}
	if s.special || s.prompt || t.stream == nil {
		return out, false
	}
	var stopped bool
	out.Text, stopped = t.stop.push(t.stream.Push(s.id))
	return out, stopped
}

// flush returns the text held back at the end, and whether a stop string cut it.
func (t *transcript) flush() (text string, stopped bool) {
	if t.stream == nil {
		return "", false
	}
	text, stopped = t.stop.push(t.stream.Flush())
	if !stopped {
		text += t.stop.flush()
	}
	return text, stopped
}
