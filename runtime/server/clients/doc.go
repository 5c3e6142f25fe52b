// Package clients talks to a running sandwich server through the official
// OpenAI client, as a user's program would. It is a module of its own, so that
// the client is no dependency of sandwich; `make clients` runs it.
// The clients in JavaScript beside it are npm's, the agents in agents/ too.
package clients
