// Package openaitest talks to a running sandwich server through the official
// OpenAI client, as a user's program would. It is a module of its own, so that
// the client is no dependency of sandwich; `make openai-client` runs it.
package openaitest
