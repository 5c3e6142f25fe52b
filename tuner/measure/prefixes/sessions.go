package prefixes

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/prefix"
)

// SessionOptions configures Sessions.
type SessionOptions struct {
	Open     Open
	Dir      string // of the store
	Sessions int    // with texts of their own
	Requests int    // by sessions drawn at random, some more often
	Longest  int    // most tokens of a session
	Bytes    int64  // limit of the store
	Vocab    int
	Step     func() // is called Requests times
}

// SessionRow compares the hits of a store with those of an exact LRU of the same bytes. Its JSON is
// stable.
type SessionRow struct {
	Sessions int     `json:"sessions"`
	Requests int     `json:"requests"`
	Tokens   int64   `json:"tokens"`         // of all prompts
	Limit    int64   `json:"limit_bytes"`    // of the store
	Most     int64   `json:"most_bytes"`     // of the folder after any request
	Written  int64   `json:"written_bytes"`  // of blocks
	Evicted  int64   `json:"evicted_blocks"` // blocks
	Hits     int64   `json:"hit_tokens"`     // of the store
	LRU      int64   `json:"lru_hit_tokens"` // of the exact LRU
	Ratio    float64 `json:"ratio"`          // Hits / LRU
	Model    string  `json:"model"`
	Plan     string  `json:"plan"`
	KV       string  `json:"kv"`
	CPU      string  `json:"cpu"`
}

// group is the number of sessions that share the first block of their texts.
const group = 10

// Sessions sends the requests of sessions to an engine with a small store. Before each request it
// compares what the store has of the prompt with what an exact LRU has that saw the same requests.
func Sessions(ctx context.Context, o SessionOptions) (*SessionRow, error) {
	store, err := disk.Open(o.Dir, disk.Options{WriteRate: -1, Bytes: o.Bytes})
	if err != nil {
		return nil, err
	}
	e, err := o.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	c := e.Prefixes()
	size, err := blockSize(c)
	if err != nil {
		return nil, err
	}
	row := &SessionRow{Sessions: o.Sessions, Requests: o.Requests, Limit: o.Bytes}
	ideal, rng := newLRU[kvcache.Key](o.Bytes), rand.New(rand.NewPCG(1, 1))
	for range o.Requests {
		prompt := o.prompt(min(rng.IntN(o.Sessions), rng.IntN(o.Sessions)))
		row.Tokens += int64(len(prompt))
		row.Hits += int64(c.Find(kvcache.Salt{}, prompt).Positions)
		keys := kvcache.Keys(kvcache.Salt{}, prompt)
		n := 0
		for n < len(keys) && n < (len(prompt)-1)/kvcache.BlockTokens && ideal.has(keys[n]) {
			n++
		}
		row.LRU += int64(n * kvcache.BlockTokens)
		for _, k := range slices.Backward(keys) {
			ideal.use(k, size)
		}
		if _, err := generate(ctx, e, prompt, 1, true); err != nil {
			return nil, err
		}
		if err := c.Flush(ctx); err != nil {
			return nil, err
		}
		objects, err := store.Objects()
		if err != nil {
			return nil, err
		}
		total := int64(0)
		for i := range objects {
			total += objects[i].Bytes
		}
		row.Most = max(row.Most, total)
		o.Step()
	}
	s := e.Stats().Prefixes
	row.Written, row.Evicted, row.Ratio = s.WrittenBytes, s.Evicted, 1
	if row.LRU > 0 {
		row.Ratio = float64(row.Hits) / float64(row.LRU)
	}
	return row, nil
}

// blockSize returns the size of the files of one block of the text in all stores.
func blockSize(c *prefix.Cache) (size int64, err error) {
	if c == nil {
		return 0, errNoStore
	}
	for store, k := range c.Kinds {
		switch {
		case c.Sizes[store] == 0:
		case k.Most() != kvcache.All:
			return 0, errors.New("sliding windows and recurrent states are not compared with an LRU; use a model " +
				"whose layers keep all positions, such as llama-160m")
		default:
			size += disk.FileSize(c.Sizes[store])
		}
	}
	return size, nil
}

// prompt returns the text of a session.
func (o *SessionOptions) prompt(session int) []int32 {
	rng := rand.New(rand.NewPCG(2, uint64(session)))
	minimum := min(2*kvcache.BlockTokens+1, o.Longest)
	n := minimum + rng.IntN(o.Longest-minimum+1)
	shared := randomTokens(uint64(session/group), min(kvcache.BlockTokens, n), o.Vocab)
	return slices.Concat(shared, randomTokens(uint64(1000+session), n-len(shared), o.Vocab))
}
