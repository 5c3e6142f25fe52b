// Package grammar constrains what is generated: a JSON Schema or a grammar in GBNF becomes a
// machine over bytes, and a Matcher says for each step of an answer which tokens of a vocabulary
// may come next.
//
//	meter := grammar.NewMeter(ctx, limits)        // bounds memory and work
//	g, err := meter.FromSchema(schema)            // once a request; refused by the path of the keyword
//	m := g.Matcher(vocab)                         // follows one answer
//	mask := m.Mask(left)                          // the tokens allowed now, left to generate
//	err = m.Accept(token)                         // the one that was drawn
//	reusable := m.End()                           // the answer is over
//
// An expression (expr.go) is what both notations are read into. A program (program.go) is its rules
// as automata whose edges are ranges of bytes, calls of rules, and loops with a counter. A position
// of an answer is a state (state.go): the set of all stacks of the program that the bytes so far
// allow. States are made when they are met and kept, so that the machine is a deterministic one
// that exists only where somebody has been. A vocabulary (vocab.go) is a trie of its tokens; a mask
// is a walk of the trie from a state.
//
// The package is pure: it knows neither tokenizers nor requests, and holds no goroutine and no
// clock.
package grammar
