// Package server implements an HTTP API over a Generator, or over several that the model of a
// request chooses:
//   - OpenAI: /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, /v1/models
//   - Anthropic: /v1/messages and /v1/messages/count_tokens
//   - llama-server and vLLM: /tokenize, /detokenize, /apply-template, /props, /v1/rerank
//   - ollama: /api/chat, /api/generate, /api/embed and the endpoints that list models
//   - operation: /health and /metrics
//
// Paths work with and without /v1.
//
// The server reads a request into bounded memory, checks each field and passes the request to the
// Generator. It streams the tokens as server-sent events or collects them into one JSON object. If
// the client closes the connection, the context passed to Generate is canceled. The server refuses
// fields by name if their value is invalid, if they ask for something unsupported such as best_of,
// or if they look like a misspelling of a known field. It ignores other fields and logs each name
// once. Unusable parts of a conversation are left out with a warning.
//
// Extensions of OpenAI's API are top_k, min_p, repetition_penalty (or repeat_penalty), n_predict,
// ignore_eos, cache_salt and priority. Requests are reactive unless priority, service_tier, the
// header X-Sandwich-Priority or their API key makes them proactive; lower priorities run first
// within a class. Response headers state the queue position and estimates.
//
// Browsers may use the API only from its own origin or one of Options.Origins, under one of
// Options.Hosts, and with JSON bodies. Requests share cached prefixes only with requests of the
// same API key. Each request has an id (X-Request-Id) and one line in Options.Log, which holds
// figures but no content.
//
// The server accepts connections before its Generator is ready and while it shuts down: /health
// then reports the state, and all other requests are refused. The number of connections is bounded
// in total and per client; idle connections are closed first. ServeHealth serves /health on a
// separate listener.
//
// This package has the routes, keys, browser checks, readiness and shutdown. One package for each
// API (openai, anthropic, ollama, responses, embedding) parses its requests and writes its answers;
// they share generation, which runs requests, exchange, which writes responses, and request, fields
// and conversation, which check what clients send.
package server
