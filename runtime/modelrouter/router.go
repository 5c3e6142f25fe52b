// Package modelrouter answers each request with the model that it names, by name or alias. It loads
// the model if necessary; see package modelcache.
package modelrouter

import (
	"slices"
	"strings"
	"sync/atomic"

	"sandwich/runtime/modelcache"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/status"
)

// Model is a model that a router serves.
type Model struct {
	// Info describes the model. State is not used.
	Info generation.ModelInfo
	// Keys are the API keys that may use the model; nil: all.
	Keys  map[generation.Key]bool
	Entry *modelcache.Entry
	// Failed is called with the error of a load that a request waited for; the client gets a
	// message without details.
	Failed func(err error)
	// Plan describes the plan of the model, for the page of the server; nil: unknown, as is a nil
	// result.
	Plan func() *status.Plan
}

// Router implements generation.Router. Methods may be called concurrently.
type Router struct {
	cache *modelcache.Cache
	table atomic.Pointer[table]
	own   func() []metrics.Metric
}

// table is an immutable set of models.
type table struct {
	list   []*Model
	byName map[string]*Model
}

// New returns a router over models of a cache; Set adds them. own returns further metrics; nil:
// none.
func New(c *modelcache.Cache, own func() []metrics.Metric) *Router {
	r := &Router{cache: c, own: own}
	r.Set(nil)
	return r
}

// Set replaces the models. Their names and aliases must be distinct. Requests that were routed
// before keep their model.
func (r *Router) Set(models []*Model) {
	t := &table{list: models, byName: map[string]*Model{}}
	for _, m := range models {
		for _, name := range append([]string{m.Info.ID}, m.Info.Aliases...) {
			t.byName[name] = m
		}
	}
	r.table.Store(t)
}

// defaultTag is appended to names by ollama's clients.
const defaultTag = ":latest"

// Route returns the model of a name, or the first model that the key may use for the name "".
func (r *Router) Route(name string, key generation.Key) (generation.Routed, bool) {
	t := r.table.Load()
	if name == "" {
		for _, m := range t.list {
			if m.admits(key) {
				return &lease{model: m}, true
			}
		}
		return nil, false
	}
	m := t.byName[name]
	if m == nil {
		m = t.byName[strings.TrimSuffix(name, defaultTag)]
	}
	if m == nil || !m.admits(key) {
		return nil, false
	}
	return &lease{model: m}, true
}

func (m *Model) admits(key generation.Key) bool { return m.Keys == nil || m.Keys[key] }

// describe returns the description of the model in its present state.
func (m *Model) describe() generation.ModelInfo {
	info := m.Info
	info.State = m.Entry.State()
	return info
}

// Models lists the models that a key may use, in the order of the file.
func (r *Router) Models(key generation.Key) []generation.ModelInfo {
	var list []generation.ModelInfo
	for _, m := range r.table.Load().list {
		if m.admits(key) {
			list = append(list, m.describe())
		}
	}
	return list
}

// Ready returns the error of the first loaded model that accepts no requests, such as for want of
// available CPUs, which all models share.
func (r *Router) Ready() (err error) {
	for _, m := range r.table.Load().list {
		m.Entry.View(func(i modelcache.Instance) {
			if err == nil {
				err = i.Ready()
			}
		})
	}
	return err
}

// Metrics returns the metrics of the loaded models with a label for the model, and those of the
// cache.
func (r *Router) Metrics() []metrics.Metric {
	var out []metrics.Metric
	for _, m := range r.table.Load().list {
		state := m.Entry.State()
		for _, s := range []string{generation.StateLoaded, generation.StateLoading, generation.StateUnloaded} {
			v := 0.0
			if s == state {
				v = 1
			}
			out = append(out, metrics.Metric{Name: "sandwich_model_state", Help: "1 for the state of a model.",
				Labels: [][2]string{{"model", m.Info.ID}, {"state", s}}, Value: v})
		}
		m.Entry.View(func(i modelcache.Instance) {
			for _, x := range i.Metrics() {
				x.Labels = append([][2]string{{"model", m.Info.ID}}, slices.DeleteFunc(slices.Clone(x.Labels),
					func(l [2]string) bool { return l[0] == "model" })...)
				out = append(out, x)
			}
		})
	}
	n := r.cache.Counts()
	counter := func(name, help string, v int64) {
		out = append(out, metrics.Metric{Name: "sandwich_model_" + name, Help: help, Counter: true, Value: float64(v)})
	}
	counter("loads_total", "Models loaded.", n.Loads)
	counter("failed_loads_total", "Loads of models that failed or were cancelled.", n.Failed)
	counter("unloads_total", "Models unloaded.", n.Unloads)
	out = append(out, metrics.Metric{Name: "sandwich_model_memory_bytes", Value: float64(n.Used),
		Help: "Memory of loaded and loading models that counts towards the budget."})
	if r.own != nil {
		out = append(out, r.own()...)
	}
	return out
}
