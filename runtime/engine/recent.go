package engine

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// Limits of recentTexts.
const (
	maxRecent       = 64      // texts
	maxRecentTokens = 1 << 20 // tokens of all texts: 4 MiB
)

// recentTexts holds the tokens of the texts that were computed last, prompt and answer, whether or
// not their blocks are still cached. It finds where a prompt diverges from them, which the prefix
// cache cannot: that knows only hashes of blocks. The zero value is empty. Its methods may be
// called concurrently.
type recentTexts struct {
	mu     sync.Mutex
	texts  []recentText // oldest first
	tokens int          // of all texts
}

// recentText is a text and the salt of the API key that it belongs to.
type recentText struct {
	salt [sha256.Size]byte
	ids  []int32
}

// add stores a text and takes ownership of ids. It removes texts that are a prefix of the new one,
// and the oldest ones beyond the limits.
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

// diverged returns the index of the first token of a prompt that differs from the stored text of
// the same salt with which it shares the longest prefix. It returns -1 if there is no such text, or
// if one of the two is a prefix of the other.
func (t *recentTexts) diverged(salt [sha256.Size]byte, prompt []int32) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	largest, differs := -1, false
	for i := len(t.texts) - 1; i >= 0 && largest < len(prompt); i-- {
		ids := t.texts[i].ids
		// A text that ends at most, or differs there, shares no longer prefix.
		if t.texts[i].salt != salt || largest >= 0 && (len(ids) <= largest || ids[largest] != prompt[largest]) {
			continue
		}
		n := common(ids, prompt)
		if n > largest {
			largest, differs = n, n < len(ids) && n < len(prompt)
		}
	}
	if !differs {
		return -1
	}
	return largest
}

// common returns the length of the common prefix of two texts.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
