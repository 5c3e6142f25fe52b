package answer

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// smallBodies are short schemas that need large automata; each has a number in place of %d, so that
// no two are equal.
var smallBodies = []string{
	`{"type":"integer","multipleOf":40%02d}`,
	`{"type":"integer","multipleOf":40%02d,"minimum":-123456789012345,"maximum":987654321012345}`,
	`{"type":"string","pattern":"(a?){4%02d}a{400}","minLength":700,"maxLength":900}`,
	`{"allOf":[{"type":"string","pattern":"\\p{L}\\p{N}{1,1%02d}\\p{Lu}"},{"pattern":"\\p{Ll}.{12}\\p{N}"}]}`,
	`{"type":"string","pattern":"^(?=.*[a-z]{3})(?=.*[A-Z].{5}x)(?=.*\\d.{6}y)(?!.*foo%02d).{8,64}$"}`,
	`{"oneOf":[{"type":"string","pattern":"x.{3}y%02d"},{"type":"string","pattern":"x.{5}y"}]}`,
	`{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":%02d},"minItems":30}`,
	`{"type":"number","multipleOf":0.0000000000002%02d}`,
}

// TestConcurrentBodies checks that the heap stays small while many requests with such schemas are
// compiled and held concurrently, some of which wait for memory of others.
func TestConcurrentBodies(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	live := func() int64 {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		return int64(s[0].Value.Uint64())
	}
	f := testCache(cacheBytes)
	vocab := sync.OnceValue(bytesVocab)
	vocab()
	runtime.GC()
	begin, largest := live(), int64(0)
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				largest = max(largest, live()-begin)
			}
		}
	}()
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			text := fmt.Sprintf(smallBodies[i%len(smallBodies)], i+1)
			spec := grammarSpec{vocab: vocab, compile: func(m *grammar.Meter) (*grammar.Grammar, []string, error) {
				g, err := m.FromSchema([]byte(text))
				return g, nil, err
			}}
			h, err := f.take(t.Context(), keyOf(&api.Request{Format: api.Format{Text: text}}, false), spec)
			var refused *grammar.Error
			if err != nil && !errors.As(err, &refused) {
				t.Errorf("%s: %v", text, err)
			}
			if h != nil {
				h.Mask(100)
			}
			f.put(h)
		})
	}
	all.Wait()
	close(done)
	<-over
	if limit := int64(96 << 20); largest > limit {
		t.Errorf("%d MiB are in use at once, want at most %d", largest>>20, limit>>20)
	}
	t.Logf("%d MiB are in use at once", largest>>20)
}
