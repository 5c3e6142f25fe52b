package answer

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// formBytes bounds what is kept of grammars that nobody uses at the moment.
const formBytes = 128 << 20

// forms keeps compiled grammars with the states and masks that answers made of them: an agent sends
// the same tools with every request. Two requests that run at once share masks and have a Matcher
// each, with its states; one that ends leaves its own to the next. What was used least recently
// goes where there is no room.
type forms struct {
	mu    sync.Mutex
	left  int64 // bytes that may still be kept
	byKey map[formKey]*form
	used  list.List // of *form with idle matchers, the latest used first

	compiled, reused int64
}

type formKey [sha256.Size]byte

// form is a grammar. Its fields belong to the lock of forms, but for what compiling sets before
// ready is closed.
type form struct {
	key   formKey
	ready chan struct{}
	err   error
	g     *grammar.Grammar
	users int
	idle  []*grammar.Matcher
	bytes int64         // of the grammar with its masks, and of idle; 0 where idle is empty
	place *list.Element // nil where idle is empty
}

// held is a Matcher in use.
type held struct {
	*grammar.Matcher
	of *form
}

func newForms(bytes int64) *forms { return &forms{left: bytes, byKey: map[formKey]*form{}} }

// take is a Matcher of the form of a key. Of those who come for a new form at once, one compiles
// it.
func (f *forms) take(ctx context.Context, key formKey, v func() *grammar.Vocab,
	compile func() (*grammar.Grammar, error)) (*held, error) {
	for {
		t := f.form(key, compile)
		select {
		case <-t.ready:
		case <-ctx.Done():
			f.leave(t, nil)
			return nil, ctx.Err()
		}
		if t.err == nil {
			return &held{f.matcher(t, v), t}, nil
		}
		f.leave(t, nil)
		if ctx.Err() != nil || !errors.Is(t.err, context.Canceled) && !errors.Is(t.err, context.DeadlineExceeded) {
			return nil, t.err
		}
		// Who compiled it hung up: it is somebody else's turn.
	}
}

// form finds a form, or compiles it.
func (f *forms) form(key formKey, compile func() (*grammar.Grammar, error)) *form {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.byKey[key]; t != nil {
		t.users++
		f.reused++
		return t
	}
	t := &form{key: key, ready: make(chan struct{}), users: 1, err: errors.New("its compiler gave up")}
	f.byKey[key] = t
	f.compiled++
	f.mu.Unlock()
	defer func() { // also where compile panics
		f.mu.Lock()
		if t.err != nil {
			delete(f.byKey, key)
		}
		close(t.ready)
	}()
	t.g, t.err = compile()
	return t
}

// matcher is one that nobody uses, or a new one.
func (f *forms) matcher(t *form, v func() *grammar.Vocab) *grammar.Matcher {
	f.mu.Lock()
	n := len(t.idle)
	if n == 0 {
		f.mu.Unlock()
		return t.g.Matcher(v())
	}
	defer f.mu.Unlock()
	m := t.idle[n-1]
	t.idle = t.idle[:n-1]
	f.count(t)
	m.Again()
	return m
}

// put ends the use of a Matcher, whose answer nobody follows any more. Of nil it ends nothing.
func (f *forms) put(h *held) {
	switch {
	case h == nil:
	case h.End():
		f.leave(h.of, h.Matcher)
	default:
		f.leave(h.of, nil)
	}
}

// leave ends a use of a form, and keeps a Matcher of it where there is one.
func (f *forms) leave(t *form, m *grammar.Matcher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.users--
	if m != nil {
		t.idle = append(t.idle, m)
		f.count(t)
	}
	for f.left < 0 {
		f.drop(f.used.Back().Value.(*form))
	}
	f.forget(t)
}

// count notes that the idle matchers of a form are others now, and that it was used.
func (f *forms) count(t *form) {
	bytes := int64(0)
	if len(t.idle) > 0 {
		bytes = t.g.Memory()
	}
	for _, m := range t.idle {
		bytes += m.Memory()
	}
	f.left -= bytes - t.bytes
	t.bytes = bytes
	switch {
	case len(t.idle) == 0:
		f.used.Remove(t.place)
		t.place = nil
	case t.place == nil:
		t.place = f.used.PushFront(t)
	default:
		f.used.MoveToFront(t.place)
	}
}

// drop gives up the idle matchers of a form.
func (f *forms) drop(t *form) {
	t.idle = nil
	f.count(t)
	f.forget(t)
}

// forget gives up a form of which nothing is left or in use.
func (f *forms) forget(t *form) {
	if t.users == 0 && len(t.idle) == 0 && f.byKey[t.key] == t {
		delete(f.byKey, t.key)
	}
}

// keyOf tells the forms of requests apart: by all that a grammar is made of, and by the salt, so
// that no key learns by the time that it takes what another asks for.
func keyOf(r *api.Request, thinking bool) (key formKey) {
	h := sha256.New()
	text := func(parts ...string) {
		for _, s := range parts {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
			h.Write([]byte(s))
		}
	}
	flag := func(v bool) byte {
		if v {
			return 1
		}
		return 0
	}
	h.Write(r.Salt[:])
	h.Write([]byte{byte(r.Format.Kind), flag(thinking), flag(mayCall(r)), flag(r.OneCall), byte(r.ToolChoice.Mode)})
	text(r.Format.Text)
	if mayCall(r) {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(r.ToolChoice.Names))))
		text(r.ToolChoice.Names...)
		for _, t := range r.Tools {
			text(t.Name, t.Parameters)
		}
	}
	h.Sum(key[:0])
	return key
}
