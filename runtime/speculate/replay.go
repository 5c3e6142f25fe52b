package speculate

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// Replay proposes the tokens of recorded answers, each replaced by a wrong token with probability
// 1-Accept. Tests and benchmarks use it to set the acceptance. Record all answers before Open.
type Replay struct {
	Accept  float64 // probability that a drafted token is right
	Vocab   int     // tokens of the model, at least 2
	Lengths bool    // drafts have random lengths from 0 to the one asked for
	Seed    uint64

	mu      sync.Mutex
	answers map[[sha256.Size]byte][]int32
}

// Name returns "replay".
func (*Replay) Name() string { return "replay" }

// Bytes returns the memory of the recorded answers.
func (r *Replay) Bytes() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.answers {
		n += int64(4 * len(a))
	}
	return n
}

// Record sets the answer to a prompt.
func (r *Replay) Record(prompt, answer []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[[sha256.Size]byte][]int32{}
	}
	r.answers[digest(prompt)] = answer
}

// digest identifies a prompt.
func digest(prompt []int32) [sha256.Size]byte {
	b := make([]byte, 0, 4*len(prompt))
	for _, t := range prompt {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	return sha256.Sum256(b)
}

// Open returns a text that replays the recorded answer to a prompt; it proposes nothing if there is
// none.
func (r *Replay) Open(_ [sha256.Size]byte, prompt []int32) Text {
	key := digest(prompt)
	r.mu.Lock()
	defer r.mu.Unlock()
	seed := binary.LittleEndian.Uint64(key[:8])
	return &replayText{of: r, answer: r.answers[key], rng: rand.New(rand.NewPCG(r.Seed, seed))}
}

// replayText is a sequence of a Replay.
type replayText struct {
	of     *Replay
	answer []int32
	at     int // tokens appended
	rng    *rand.Rand
}

// Append counts a token.
func (t *replayText) Append(int32) { t.at++ }

// Draft appends the next tokens of the recorded answer.
func (t *replayText) Draft(dst []int32, n int) ([]int32, int) {
	if t.of.Lengths {
		n = t.rng.IntN(n + 1)
	}
	for i := t.at; i < min(len(t.answer), t.at+n); i++ {
		id := t.answer[i]
		if t.rng.Float64() >= t.of.Accept {
			id = (id + 1 + int32(t.rng.IntN(t.of.Vocab-1))) % int32(t.of.Vocab)
		}
		dst = append(dst, id)
	}
	return dst, 0
}

// Close does nothing.
func (*replayText) Close() {}
