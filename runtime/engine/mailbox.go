package engine

import (
	"sync"
	"time"

	"sandwich/runtime/api"
)

// drawnToken is a token that the loop passes to the goroutine of its request.
type drawnToken struct {
	id      int32
	at      time.Time // when it was drawn
	end     bool      // an end-of-generation token, which is not part of the text
	prompt  bool      // a token of the prompt
	logprob float32
	top     []api.TokenLogprob
}

// token returns the token as emit gets it.
func (s *drawnToken) token() api.Token {
	return api.Token{TokenLogprob: api.TokenLogprob{ID: s.id, Logprob: s.logprob}, Top: s.top, Prompt: s.prompt,
		End: s.end}
}

// ending holds why a job's tokens end.
type ending struct {
	reason api.Finish
	err    error
}

// mailbox passes a job's tokens from the loop to the goroutine of the request. It is unbounded up
// to the request's token limit, so that a slow client does not block the loop. Its methods may be
// called concurrently.
type mailbox struct {
	mu     sync.Mutex
	steps  []drawnToken
	spare  []drawnToken
	end    *ending
	prompt int           // positions of the prompt that are computed
	ready  chan struct{} // capacity 1
	stop   func()        // called when the tokens end; may be nil
}

// onEnd sets a function that is called when the tokens end; it calls it at once if they have ended.
func (m *mailbox) onEnd(stop func()) {
	m.mu.Lock()
	m.stop = stop
	over := m.end != nil
	m.mu.Unlock()
	if over {
		stop()
	}
}

// report sets how many positions of the prompt are computed.
func (m *mailbox) report(positions int) {
	m.mu.Lock()
	m.prompt = positions
	m.mu.Unlock()
	m.ring()
}

// computedPrompt returns the number that report has set last.
func (m *mailbox) computedPrompt() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prompt
}

func (m *mailbox) put(s drawnToken) {
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

// take returns and removes all tokens, and the end of the job if it has ended. The slice is valid
// until the second next call.
func (m *mailbox) take() ([]drawnToken, *ending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.steps
	m.steps, m.spare = m.spare[:0], out
	return out, m.end
}
