package engine

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// Bounds of recentTexts.
const (
	maxRecent       = 64      // texts
	maxRecentTokens = 1 << 20 // tokens of all texts: 4 MiB
)

// recentTexts holds the tokens of the texts that were computed last, prompt and answer, whether or
// not their blocks are still cached. The prefix cache knows blocks by their hashes and cannot say
// where a prompt differs from what is cached. The zero value is empty. Its methods may be called
// concurrently.
type recentTexts struct {
	mu     sync.Mutex
	texts  []recentText // the latest last
	tokens int          // of all
}

type recentText struct {
	salt [sha256.Size]byte
	ids  []int32
}

// add keeps a text, whose memory it owns from here on. Texts that it begins with are forgotten.
func (t *recentTexts) add(salt [sha256.Size]byte, ids []int32) {
	if len(ids) == 0 || len(ids) > maxRecentTokens {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.texts = slices.DeleteFunc(t.texts, func(o recentText) bool {
		n := len(o.ids)
		begins := o.salt == salt && n <= len(ids) && o.ids[n-1] == ids[n-1] && slices.Equal(o.ids, ids[:n])
		if begins {
			t.tokens -= n
		}
		return begins
	})
	t.texts = append(t.texts, recentText{salt, ids})
	t.tokens += len(ids)
	gone := 0
	for len(t.texts)-gone > maxRecent || t.tokens > maxRecentTokens {
		t.tokens -= len(t.texts[gone].ids)
		gone++
	}
	t.texts = slices.Delete(t.texts, 0, gone)
}

// diverged returns the index of the first token of a prompt that differs from the text of its salt
// that it has the longest beginning in common with. It returns -1 if there is no such text, the
// prompt continues all of it, or it continues the prompt.
func (t *recentTexts) diverged(salt [sha256.Size]byte, prompt []int32) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	most, differs := -1, false
	for i := len(t.texts) - 1; i >= 0 && most < len(prompt); i-- {
		ids := t.texts[i].ids
		// A text that differs at most, or ends there, has no more in common.
		if t.texts[i].salt != salt || most >= 0 && (len(ids) <= most || ids[most] != prompt[most]) {
			continue
		}
		n := common(ids, prompt)
		if n > most {
			most, differs = n, n < len(ids) && n < len(prompt)
		}
	}
	if !differs {
		return -1
	}
	return most
}

// common returns how many tokens two texts begin with alike.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
