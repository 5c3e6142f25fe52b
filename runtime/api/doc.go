// Package api holds what a request asks for, what it gets, and how it is refused: the types that
// every door (HTTP endpoints, the command line) and the engine share, so that a request is written
// down once. It is a leaf: it imports nothing of ours, and nothing here computes but Printable,
// which the errors that quote a file share.
//
// A door makes a Request, whoever has the tokenizer turns its messages or text into token ids, and
// the engine answers with Tokens and a Result, or with one of the errors here, for which every door
// has an answer of its own.
package api
