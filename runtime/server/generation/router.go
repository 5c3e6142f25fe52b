package generation

import (
	"crypto/sha256"

	"sandwich/runtime/server/metrics"
)

// States of a model of several.
const (
	StateLoaded   = "loaded"
	StateLoading  = "loading"
	StateUnloaded = "unloaded"
)

// Key is the digest of the API key of a request; the zero value if the API is open.
type Key [sha256.Size]byte

// Router chooses the model of each request. Methods may be called concurrently.
type Router interface {
	// Route returns the model that a request names, "" if it names none. The caller closes it. ok
	// is false if there is no such model or the key may not use it.
	Route(name string, key Key) (m Routed, ok bool)

	// Models lists the models that a key may use.
	Models(key Key) []ModelInfo

	// Metrics returns additional metrics for /metrics.
	Metrics() []metrics.Metric

	// Ready returns an error that states why no requests are accepted at present, or nil.
	Ready() error
}

// Routed is the model of one request. It may be loaded by its first method that needs that; it
// stays loaded until Close.
type Routed interface {
	Generator
	Close()
}

// One returns a router that answers all requests with a Generator, regardless of the model that
// they name.
func One(g Generator) Router { return one{g} }

// Only returns the Generator of a router that One returned, nil for other routers.
func Only(r Router) Generator {
	if o, ok := r.(one); ok {
		return o.Generator
	}
	return nil
}

type one struct{ Generator }

func (o one) Route(string, Key) (Routed, bool) { return o, true }
func (o one) Models(Key) []ModelInfo           { return []ModelInfo{o.Model()} }

// Close implements Routed; the Generator stays.
func (o one) Close() {}

// Ready asks a Generator that is a readier.
func (o one) Ready() error {
	if r, ok := o.Generator.(readier); ok {
		return r.Ready()
	}
	return nil
}
