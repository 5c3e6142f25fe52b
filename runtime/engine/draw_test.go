package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"sandwich/runtime/api"
)

// pathSet allows what the tokens so far say: often one token, else some.
type pathSet struct {
	at     uint64
	bits   [tinyVocab / 64]uint64
	whole  bool // Only answers
	length int
}

func (p *pathSet) allows(id uint64) bool {
	if p.at%3 > 0 {
		return id == 3+p.at%(tinyVocab-3)
	}
	return id > 2 && id%16 == p.at>>7%16
}

func (p *pathSet) Allowed(int) []uint64 {
	clear(p.bits[:])
	for id := range uint64(tinyVocab) {
		if p.allows(id) {
			p.bits[id/64] |= 1 << (id % 64)
		}
	}
	return p.bits[:]
}

func (p *pathSet) Only(int) (int32, bool) {
	return int32(3 + p.at%(tinyVocab-3)), p.whole && p.at%3 > 0 && !p.MustEnd()
}

func (p *pathSet) Accept(id int32) error {
	if !p.allows(uint64(id)) {
		return fmt.Errorf("token %d is not allowed", id)
	}
	p.at = p.at*6364136223846793005 + uint64(id)*2 + 1442695040888963407
	p.at ^= p.at >> 29
	p.length++
	return nil
}

func (p *pathSet) MustEnd() bool { return p.length == 40 }

// TestForcedTokens checks that a token which is the only one allowed is sent without a forward, and
// that answers equal those of drawing: alone, in a batch, and while blocks are short.
func TestForcedTokens(t *testing.T) {
	o := tinyOptions(t)
	o.Context = 128
	e := open(t, o)
	ask := func(i int, only, logprobs bool) ([]int32, api.Result) {
		r := api.Request{Prompt: tinyPrompt(uint64(i), 5+9*i), MaxTokens: 30 + 3*i, IgnoreEOS: true, Logprobs: logprobs,
			Constraint: &pathSet{at: uint64(i), whole: only}}
		if i%2 == 1 {
			r.Sampling = api.Sampling{Temperature: 0.9, TopK: 50, PresencePenalty: 0.5, Seed: uint64(i)}
		}
		tokens, res := generate(t, e, r)
		return tokens, res
	}
	before := e.Stats().Decodes
	var plain, forced, together [8][]int32
	var results [8]api.Result
	for i := range plain {
		plain[i], results[i] = ask(i, false, false)
	}
	between := e.Stats().Decodes
	for i := range forced {
		var res api.Result
		forced[i], res = ask(i, true, false)
		if res.Finish != results[i].Finish || res.Tokens != results[i].Tokens || len(forced[i]) != min(40, 30+3*i) {
			t.Errorf("request %d: %+v, drawn %+v", i, res, results[i])
		}
	}
	if drawn, now := between-before, e.Stats().Decodes-between; 2*now > drawn {
		t.Errorf("%d decodes with forced tokens, %d without: not half as many", now, drawn)
	}
	var all sync.WaitGroup
	for i := range together {
		all.Go(func() { together[i], _ = ask(i, true, false) })
	}
	all.Wait()
	for i := range plain {
		told, _ := ask(i, true, true)
		for name, got := range map[string][]int32{"forced": forced[i], "in a batch": together[i], "logprobs": told} {
			if !slices.Equal(got, plain[i]) {
				t.Errorf("request %d: drawn %v, %s %v", i, plain[i], name, got)
			}
		}
	}
	checkIdleSoon(t, e)
}
