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

// bytesVocab returns a vocabulary with a token for each byte and an end token.
func bytesVocab() *grammar.Vocab {
	text := make([][]byte, 257)
	for i := range 256 {
		text[i] = []byte{byte(i)}
	}
	return grammar.NewVocab(text, []int32{256})
}

// testCache returns a cache of so many bytes with its own compilations.
func testCache(bytes int64) *grammarCache { return newGrammarCache(bytes, newCompilations()) }

// specOf returns how to compile a schema.
func specOf(schema string) grammarSpec {
	compile := func(m *grammar.Meter) (*grammar.Grammar, []string, error) {
		g, err := m.FromSchema([]byte(schema))
		return g, nil, err
	}
	return grammarSpec{vocab: sync.OnceValue(bytesVocab), compile: compile}
}

// TestGrammarCache checks that a grammar is compiled once, also for concurrent requests, that its
// Matchers are reused by later answers and never shared, and that a request that ends does not
// delay the others.
func TestGrammarCache(t *testing.T) {
	f := testCache(1 << 20)
	var compiled atomic.Int64
	begun, go_ := make(chan struct{}), make(chan struct{})
	spec := specOf(`{"type":"integer"}`)
	compile := spec.compile
	spec.compile = func(m *grammar.Meter) (*grammar.Grammar, []string, error) {
		if compiled.Add(1) == 1 {
			close(begun)
			<-go_
		}
		return compile(m)
	}
	key := keyOf(&api.Request{}, false)
	var all sync.WaitGroup
	var mu sync.Mutex
	inUse := map[*grammar.Matcher]bool{}
	for range 8 {
		all.Go(func() {
			for range 20 {
				h, err := f.take(t.Context(), key, spec)
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
	if _, err := f.take(gone, key, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(go_)
	all.Wait()
	if compiled.Load() != 1 || f.compiled != 1 || f.reused != 160 {
		t.Errorf("compiled %d times, reused %d", compiled.Load(), f.reused)
	}
	emptied(t, f)
}

// TestFailedCompilations checks that a failed compilation leaves nothing, and that the next request
// compiles a grammar whose compiling request was canceled.
func TestFailedCompilations(t *testing.T) {
	f := testCache(1 << 20)
	other := keyOf(&api.Request{}, true)
	object := specOf(anyObject)
	failing := func(how func() error) grammarSpec {
		spec := object
		spec.compile = func(*grammar.Meter) (*grammar.Grammar, []string, error) { return nil, nil, how() }
		return spec
	}
	refused := errors.New("refused")
	for range 2 {
		if _, err := f.take(t.Context(), other, failing(func() error { return refused })); err != refused {
			t.Errorf("%v", err)
		}
		hung, waits := make(chan struct{}), make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := f.take(ctx, other, failing(func() error {
				close(hung)
				<-ctx.Done()
				return ctx.Err()
			}))
			waits <- err
		}()
		<-hung
		go func() {
			h, err := f.take(t.Context(), other, object)
			f.put(h)
			waits <- err
		}()
		cancel()
		for range 2 {
			if err := <-waits; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		drained(f)
	}
	emptied(t, f)
}

// drained drops all cached grammars that no request uses.
func drained(f *grammarCache) {
	programs := &f.work.programs
	programs.mu.Lock()
	defer programs.mu.Unlock()
	for n := f.reclaim(); n > 0; n = f.reclaim() {
		programs.free += n
	}
}

// emptied drops the whole cache, after which every byte is free.
func emptied(t *testing.T, f *grammarCache) {
	t.Helper()
	drained(f)
	if f.left != 1<<20 || f.used.Len() != 0 || len(f.byKey) != 0 || f.work.programs.free != programBytes {
		t.Errorf("%d bytes are left and %d for programs, %d grammars", f.left, f.work.programs.free, len(f.byKey))
	}
}

// TestCacheIsBounded checks that the cache stays within its limit while answers add masks to a
// grammar with idle Matchers, and that the least recently used grammar is dropped.
func TestCacheIsBounded(t *testing.T) {
	const limit = 60 << 10
	f := testCache(limit)
	v := sync.OnceValue(bytesVocab)
	spec := func(name string) grammarSpec {
		return grammarSpec{vocab: v, compile: func(m *grammar.Meter) (*grammar.Grammar, []string, error) {
			g, err := m.FromGBNF(`root ::= "`+name+`" [a-z]*`, v())
			return g, nil, err
		}}
	}
	key := func(name string) grammarKey { return keyOf(&api.Request{Format: api.Format{Text: name}}, false) }
	take := func(name string) *lease {
		h, err := f.take(t.Context(), key(name), spec(name))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	check := func() {
		t.Helper()
		kept := int64(0)
		for _, at := range f.byKey {
			for _, m := range at.idle {
				kept += m.Memory()
			}
			if at.users == 0 {
				kept += at.g.Memory()
			}
		}
		if f.left < 0 || kept > limit || f.kept(limit) != kept {
			t.Fatalf("%d bytes are kept, %d counted, %d may be", kept, f.kept(limit), limit)
		}
	}
	use := func(name string) {
		h := take(name)
		h.Mask(100)
		f.put(h)
		check()
	}
	use("first")
	for i := range 60 {
		use("kept")
		use(strings.Repeat("x", i+1))
	}
	before := f.compiled
	if use("kept"); f.compiled != before {
		t.Error("the grammar that was used last is gone")
	}
	if use("first"); f.compiled != before+1 {
		t.Error("a grammar that was not used for long is still there: the test tests nothing")
	}
	a, b := take("kept"), take("kept")
	f.put(a)
	for range 200 { // masks are added to the grammar while a is idle
		b.Mask(100)
		if err := b.AcceptText([]byte("kept"[:1])); err != nil {
			break
		}
	}
	f.put(b)
	check()
}

// TestGrammarKeys checks that requests share a grammar if and only if everything that determines
// the grammar is equal.
func TestGrammarKeys(t *testing.T) {
	base := func() *api.Request {
		return &api.Request{Messages: []api.Message{}, Tools: []api.Tool{{Name: "a", Parameters: "b"}, {Name: "c"}}}
	}
	seen := map[grammarKey]int{keyOf(base(), false): -1}
	if r := base(); keyOf(r, true) == keyOf(r, false) {
		t.Error("reasoning is not told apart")
	}
	for i, change := range []func(r *api.Request){
		func(r *api.Request) { r.Tools[0].Name, r.Tools[0].Parameters = "ab", "" },
		func(r *api.Request) { r.Tools = r.Tools[:1] }, func(r *api.Request) { r.Tools = nil },
		func(r *api.Request) { r.OneCall = true }, func(r *api.Request) { r.ToolChoice.Mode = api.ToolsRequired },
		func(r *api.Request) { r.ToolChoice.Names = []string{"a"} }, func(r *api.Request) { r.Salt[0] = 1 },
		func(r *api.Request) { r.Tools[0].Strict = true },
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
		t.Error("a field that does not affect the grammar changes the key")
	}
}
