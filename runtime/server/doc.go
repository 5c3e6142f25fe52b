// Package server is the OpenAI-compatible HTTP API over a Generator:
// /v1/chat/completions, /v1/completions, /v1/responses, /v1/models, /health and /metrics;
// Anthropic's /v1/messages with count_tokens; and, of llama-server and vLLM, /tokenize,
// /detokenize, /apply-template and /props; of ollama, /api/chat, /api/generate and what lists the
// model. Paths work with and without /v1.
//
// A request is read into bounded memory, checked field by field, and handed to
// the Generator, whose tokens are written as they come (server-sent events) or
// gathered into one answer. A client that hangs up cancels the context that
// Generate was given. A field is refused by name where its type or value is
// wrong, where it asks for what is not offered (best_of, suffix, ...), and
// where its name is a slip of a known one. Other fields are ignored, as clients
// send many, and named once in the log. A part of a conversation that cannot be
// used is left out with a warning, and the rest is answered (type history).
//
// Beside OpenAI's fields it takes top_k, min_p, repetition_penalty (or
// repeat_penalty), n_predict, ignore_eos and cache_salt. priority ("proactive", or a
// number above 0), service_tier "flex", the header X-Sandwich-Priority or the key make a
// request proactive, everything else is reactive, and inside a class the lower number goes
// first; the answer's headers say how it stood.
//
// The pages of a browser reach it only from its own origin or one of
// Options.Origins, under one of Options.Hosts, and with JSON. Requests share
// cached prefixes only with those of their own API key. Every request has an id
// (X-Request-Id) and a line in Options.Log, which holds figures and no content.
//
// The server answers before there is a Generator and after it was told to end:
// /health then says how far loading is, or that it ends, and everything else is
// refused. Connections are bounded, of all clients and of each; those that only
// wait give way to those that ask. ServeHealth is a second door for probes.
package server
