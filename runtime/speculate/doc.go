// Package speculate proposes tokens that may follow a sequence, so that one decode step can verify
// several of them, and decides how many are worth verifying.
//
// A Drafter proposes tokens. The engine computes them as additional rows of the decode batch and
// accepts those that equal the tokens it draws, so that an answer never depends on drafts. A
// Controller decides how many drafted tokens each sequence contributes, from the measured time of
// steps by their number of rows and from the recent acceptance of drafts.
package speculate

import "crypto/sha256"

// Drafter proposes tokens for the sequences of one engine. Its methods may be called concurrently.
type Drafter interface {
	// Name returns the name of the drafter in metrics, such as "ngram".
	Name() string
	// Open returns the drafter's view of a sequence that begins with a prompt. Sequences with
	// different salts must not learn from each other.
	Open(salt [sha256.Size]byte, prompt []int32) Text
	// Bytes returns the memory that the drafter uses.
	Bytes() int64
}

// Text is one sequence as a drafter sees it. Its methods must not be called concurrently.
type Text interface {
	// Append adds a token to the sequence.
	Append(token int32)
	// Draft appends at most n tokens that may follow the sequence to dst. The class, below Classes,
	// groups drafts of similar quality: acceptance is estimated for each class.
	Draft(dst []int32, n int) (draft []int32, class int)
	// Close ends the sequence and releases its memory. Calls after the first have no effect.
	Close()
}

// Classes is the number of classes of drafts.
const Classes = 5
