package answer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// bytesVocab has a token for each byte, and one that ends.
func bytesVocab() *grammar.Vocab {
	text := make([][]byte, 257)
	for i := range 256 {
		text[i] = []byte{byte(i)}
	}
	return grammar.NewVocab(text, []int32{256})
}

// TestForms: a form is compiled once, also for those who come for it at once; its Matchers go from
// one answer to the next and never to two; whoever hangs up holds nobody up.
func TestForms(t *testing.T) {
	v := sync.OnceValue(bytesVocab)
	f := newForms(1 << 20)
	var compiled atomic.Int64
	begun, go_ := make(chan struct{}), make(chan struct{})
	compile := func() (*grammar.Grammar, error) {
		if compiled.Add(1) == 1 {
			close(begun)
			<-go_
		}
		return grammar.FromSchema([]byte(`{"type":"integer"}`))
	}
	key := keyOf(&api.Request{}, false)
	var all sync.WaitGroup
	var mu sync.Mutex
	inUse := map[*grammar.Matcher]bool{}
	for range 8 {
		all.Go(func() {
			for range 20 {
				h, err := f.take(t.Context(), key, v, compile)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if inUse[h.Matcher] {
					t.Error("two answers have one matcher")
				}
				inUse[h.Matcher] = true
				mu.Unlock()
				if err := h.AcceptText([]byte("-12")); err != nil {
					t.Error(err)
				}
				mu.Lock()
				delete(inUse, h.Matcher)
				mu.Unlock()
				f.put(h)
			}
		})
	}
	<-begun
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.take(gone, key, v, compile); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(go_)
	all.Wait()
	if compiled.Load() != 1 || f.compiled != 1 || f.reused != 160 {
		t.Errorf("compiled %d times, reused %d", compiled.Load(), f.reused)
	}
	emptied(t, f)
}

// TestFormsThatFail: one that cannot be compiled leaves nothing; one whose compiler hung up is
// compiled by the next.
func TestFormsThatFail(t *testing.T) {
	v := sync.OnceValue(bytesVocab)
	f := newForms(1 << 20)
	// next.
	other := keyOf(&api.Request{}, true)
	object := func() (*grammar.Grammar, error) { return grammar.AnyObject(), nil }
	refused := errors.New("refused")
	for range 2 {
		if _, err := f.take(t.Context(), other, v, func() (*grammar.Grammar, error) {
			return nil,
				refused
		}); err != refused {
			t.Errorf("%v", err)
		}
		hung, waits := make(chan struct{}), make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := f.take(ctx, other, v, func() (*grammar.Grammar, error) {
				close(hung)
				<-ctx.Done()
				return nil, ctx.Err()
			})
			waits <- err
		}()
		<-hung
		go func() {
			h, err := f.take(t.Context(), other, v, object)
			f.put(h)
			waits <- err
		}()
		cancel()
		for range 2 {
			if err := <-waits; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		f.mu.Lock()
		if at := f.byKey[other]; at != nil && len(at.idle) > 0 {
			f.drop(at)
		}
		f.mu.Unlock()
	}
	emptied(t, f)
}

// emptied drops all that is kept, after which every byte is free.
func emptied(t *testing.T, f *forms) {
	t.Helper()
	for len(f.byKey) > 0 {
		for _, at := range f.byKey {
			f.drop(at)
		}
	}
	if f.left != 1<<20 || f.used.Len() != 0 {
		t.Errorf("%d bytes left, %d forms", f.left, f.used.Len())
	}
}

// TestFormsAreBounded: what is kept stays within its bytes, and what was used least recently goes.
func TestFormsAreBounded(t *testing.T) {
	v := sync.OnceValue(bytesVocab)
	f := newForms(40 << 10)
	use := func(name string) {
		h, err := f.take(t.Context(), keyOf(&api.Request{Format: api.Format{Text: name}}, false), v,
			func() (*grammar.Grammar, error) { return grammar.FromGBNF(`root ::= "`+name+`"`, v()) })
		if err != nil {
			t.Fatal(err)
		}
		h.Mask(100)
		f.put(h)
		if f.left < 0 {
			t.Fatalf("%d bytes left", f.left)
		}
	}
	use("first")
	for i := range 60 {
		use("kept")
		use(strings.Repeat("x", i+1))
	}
	before := f.compiled
	if use("kept"); f.compiled != before {
		t.Error("what was just used is gone")
	}
	if use("first"); f.compiled != before+1 {
		t.Error("what was not used for long is still there: the test tests nothing")
	}
}

// TestFormKeys: requests share a form where all that a grammar is made of is equal.
func TestFormKeys(t *testing.T) {
	base := func() *api.Request {
		return &api.Request{Messages: []api.Message{}, Tools: []api.Tool{{Name: "a", Parameters: "b"}, {Name: "c"}}}
	}
	seen := map[formKey]int{keyOf(base(), false): -1}
	if r := base(); keyOf(r, true) == keyOf(r, false) {
		t.Error("reasoning is not told apart")
	}
	for i, change := range []func(r *api.Request){
		func(r *api.Request) { r.Tools[0].Name, r.Tools[0].Parameters = "ab", "" },
		func(r *api.Request) { r.Tools = r.Tools[:1] }, func(r *api.Request) { r.Tools = nil },
		func(r *api.Request) { r.OneCall = true }, func(r *api.Request) { r.ToolChoice.Mode = api.ToolsRequired },
		func(r *api.Request) { r.ToolChoice.Names = []string{"a"} }, func(r *api.Request) { r.Salt[0] = 1 },
		func(r *api.Request) { r.Format.Text = "x" }, func(r *api.Request) { r.Format.Kind = api.GBNF },
	} {
		r := base()
		change(r)
		key := keyOf(r, false)
		if j, twice := seen[key]; twice {
			t.Errorf("changes %d and %d have one key", i, j)
		}
		seen[key] = i
	}
	same := base()
	same.Tools[0].Description, same.Sampling.Seed, same.MaxTokens = "what it does", 7, 3
	if keyOf(same, false) != keyOf(base(), false) {
		t.Error("what no grammar is made of tells forms apart")
	}
}
