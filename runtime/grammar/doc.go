// Package grammar constrains generated text. It compiles a JSON Schema or a GBNF grammar to an
// automaton over bytes, and a Matcher returns for each step of an answer the tokens of a vocabulary
// that may come next.
//
//	meter := grammar.NewMeter(ctx, limits)        // limits memory and work
//	g, err := meter.FromSchema(schema)            // once per request; errors name the path of the keyword
//	m := g.Matcher(vocab)                         // follows one answer
//	mask := m.Mask(left)                          // the allowed tokens, if left tokens may be generated
//	err = m.Accept(token)                         // the generated token
//	reusable := m.End()                           // the answer has ended
//
// Both notations are parsed into expressions of package automaton, by packages schema and pattern
// and by gbnf.go. A program contains the rules as automata, whose edges are ranges of bytes, calls
// of rules, and loops with a counter. The position in an answer is a state (state.go): the set of
// all stacks of the program that the bytes so far allow. States are created on demand and cached,
// as in a lazily built deterministic automaton. A vocabulary (vocab.go) is a trie of its tokens; a
// mask is a walk over the trie from a state.
//
// The package does not depend on tokenizers or requests, and starts no goroutines.
package grammar
