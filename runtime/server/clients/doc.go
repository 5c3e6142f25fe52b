// Package clients tests a running sandwich server with the official OpenAI client. It is a separate
// module, so that the client is not a dependency of sandwich; `make clients` runs it, together with
// the JavaScript clients in this folder and the agents in agents/.
package clients
