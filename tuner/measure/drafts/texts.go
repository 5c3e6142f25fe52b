package drafts

import "math/rand/v2"

// Copied returns a request of random tokens whose answer copies a share of its tokens from the
// prompt, in runs of a length; the other tokens are random. Tokens are below vocab. A token
// that excluded reports does not occur; nil excludes none.
func Copied(prompt, answer, run int, share float64, vocab int, excluded func(id int32) bool, seed uint64) Request {
	rng := rand.New(rand.NewPCG(seed, 7))
	r := Request{Prompt: make([]int32, prompt), Tokens: answer}
	random := func() int32 {
		id := int32(rng.IntN(vocab))
		for excluded != nil && excluded(id) {
			id = int32(rng.IntN(vocab))
		}
		return id
	}
	for i := range r.Prompt {
		r.Prompt[i] = random()
	}
	copied := 0
	for len(r.Answer) < answer {
		n := min(run, answer-len(r.Answer), prompt)
		if float64(copied) < share*float64(len(r.Answer)+n) {
			at := rng.IntN(prompt - n + 1)
			r.Answer = append(r.Answer, r.Prompt[at:at+n]...)
			copied += n
			continue
		}
		for range n {
			r.Answer = append(r.Answer, random())
		}
	}
	return r
}
