// Package server is the OpenAI-compatible HTTP API over a Generator.
package server
