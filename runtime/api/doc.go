// Package api defines requests, answers and errors that the HTTP endpoints, the command line and
// the engine share. It is a leaf package: it imports no other package of the module.
//
// An endpoint builds a Request, the owner of the tokenizer turns its messages or text into token
// ids, and the engine returns Tokens and a Result, or one of the errors of this package. Each
// endpoint maps these errors to its protocol.
package api
