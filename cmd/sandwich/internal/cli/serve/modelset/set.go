// Package modelset serves the models of a catalog from one process.
package modelset

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/models/catalog"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/arbiter"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/mem"
	"sandwich/runtime/modelcache"
	"sandwich/runtime/modelrouter"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/request"
	"sandwich/runtime/session"
)

// Options configures a set of models.
type Options struct {
	Path    string // of the catalog
	Session modelflags.Flags
	// Sizes are those of models whose entries have none. Queue also bounds the requests that wait
	// for the load of a model.
	Sizes    session.Sizes
	Prefixes func(rounding string) *disk.Store   // opens the prefix store of a model; may return nil
	Accept   func(*session.Session) error        // returns an error for a plan that may not serve
	ReadKeys func(path string) ([]string, error) // reads a file of API keys
	Metrics  func() []metrics.Metric             // further ones; may be nil
	Notice   func(text string)                   // prints a line for the operator
	Stage    func(what string, share float64)    // receives the progress of the loads of Start
	Observe  func(used modelcache.Memory)        // see modelcache.New; may be nil
}

// Set holds the models of a catalog. Methods may be called concurrently.
type Set struct {
	o      Options
	cache  *modelcache.Cache
	router *modelrouter.Router
	cores  *arbiter.Arbiter
	free   modelcache.Budget // memory that was free at the start

	budget atomic.Pointer[modelcache.Budget] // of the catalog that is being read, or was

	mu     sync.Mutex // held during Reload; guards the rest
	models []*served
	keys   []string // of all models
}

// served is a model of the catalog in use.
type served struct {
	of     catalog.Model
	source *source
	file   string // fileID when it was inspected
	info   generation.ModelInfo
	need   modelcache.Memory
	entry  *modelcache.Entry
}

// reserve is the part of the free memory, one in so many, that the default budget leaves to others.
const reserve = 16

// Open reads the catalog and the headers of all models, and checks that each model fits the budget.
// It loads none.
func Open(o Options) (*Set, error) {
	s := &Set{o: o, cores: arbiter.New(), free: freeMemory()}
	s.cache = modelcache.New(s.free, max(1, o.Sizes.Queue), o.Observe)
	s.router = modelrouter.New(s.cache, o.Metrics)
	if _, err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// freeMemory returns the budget of a catalog without one: the free memory less a reserve, also on
// each NUMA node.
func freeMemory() modelcache.Budget {
	less := func(n int64) int64 { return n - n/reserve }
	b := modelcache.Budget{Nodes: modelcache.Memory{}}
	if n := mem.Available(); n > 0 {
		b.Total = less(n)
	}
	const nodes = 1024 // more than Linux supports
	for node := 0; node < nodes; node++ {
		n := mem.AvailableOn(node)
		if n < 0 {
			break
		}
		b.Nodes[node] = less(n)
	}
	return b
}

// Router returns the router of the models.
func (s *Set) Router() generation.Router { return s.router }

// Keys returns the API keys of all models, as lines of a key file.
func (s *Set) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

// Name describes the models for messages.
func (s *Set) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return show.Plural(len(s.models), "model") + " of " + s.o.Path
}

// First returns the description of the first model.
func (s *Set) First() generation.ModelInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models[0].info
}

// Progress returns a count that changes while an engine works, and whether all have nothing to
// compute.
func (s *Set) Progress() (count uint64, idle bool) {
	s.mu.Lock()
	models := s.models
	s.mu.Unlock()
	idle = true
	for _, m := range models {
		m.entry.View(func(i modelcache.Instance) {
			n, rests := i.(*instance).engine.Progress()
			count, idle = count+n, idle && rests
		})
	}
	return count, idle
}

// limits returns the budget of the catalog that is being read.
func (s *Set) limits() modelcache.Budget { return *s.budget.Load() }

// Start loads the models that are loaded at the start.
func (s *Set) Start(ctx context.Context) error {
	s.mu.Lock()
	models := s.models
	s.mu.Unlock()
	for _, m := range models {
		if m.of.Load == catalog.OnDemand {
			continue
		}
		name := m.of.Name
		_, release, err := m.entry.Acquire(ctx, func(share float64) { s.o.Stage("loading "+name, share) })
		if err != nil {
			return err
		}
		release()
	}
	return nil
}

// Close unloads all models. No request may be running.
func (s *Set) Close() { s.cache.Close() }

// Reload reads the catalog again and returns a description of it. Models whose entry and file are
// unchanged stay loaded; removed and changed ones are unloaded when their requests have ended. If
// the catalog is not valid, nothing changes.
func (s *Set) Reload() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := catalog.Read(s.o.Path)
	if err != nil {
		return "", exit.Usage(err)
	}
	old, budget := s.budget.Load(), s.free
	if c.Memory > 0 {
		budget.Total = c.Memory
	}
	s.budget.Store(&budget)
	models, list, keys, err := s.inspect(c)
	if err != nil {
		s.budget.Store(old)
		return "", err
	}
	before := s.models
	s.models, s.keys = models, keys
	s.cache.SetBudget(budget)
	for i, m := range models {
		pinned := m.of.Load == catalog.Pinned
		if m.entry == nil {
			m.entry = s.cache.Add(m.source, pinned)
			if before != nil && m.of.Load != catalog.OnDemand {
				m.entry.Preload()
			}
		}
		m.entry.Pin(pinned)
		list[i].Entry = m.entry
	}
	s.router.Set(list)
	for _, m := range before {
		if !s.has(m.entry) {
			m.entry.Retire()
		}
	}
	return fmt.Sprintf("%s from %s", show.Plural(len(models), "model"), s.o.Path), nil
}

// has reports whether an entry of the cache is in use.
func (s *Set) has(e *modelcache.Entry) bool {
	for _, m := range s.models {
		if m.entry == e {
			return true
		}
	}
	return false
}

// inspect opens the models of a catalog that are new or changed, and returns all of them, with the
// API keys of all.
func (s *Set) inspect(c *catalog.Catalog) (models []*served, list []*modelrouter.Model, keys []string, err error) {
	for _, e := range c.Models {
		m, err := s.inspectModel(e)
		if err != nil {
			return nil, nil, nil, err
		}
		r := &modelrouter.Model{Info: m.info, Failed: func(err error) { s.o.Notice("warning: " + err.Error()) }}
		r.Info.Aliases = e.Aliases
		if e.Class != "" {
			r.Info.Urgency, _ = request.ParseUrgency(e.Class)
		}
		if e.Keys != "" {
			lines, err := s.o.ReadKeys(e.Keys)
			if err != nil {
				return nil, nil, nil, exit.Usage(m.source.wrap(err))
			}
			r.Keys = map[generation.Key]bool{}
			for _, line := range lines {
				key, _, _ := request.ParseKey(line)
				r.Keys[sha256.Sum256([]byte(key))] = true
			}
			keys = append(keys, lines...)
		}
		models, list = append(models, m), append(list, r)
	}
	return models, list, keys, s.checkPinned(models)
}

// inspectModel returns the model of an entry: the present one if neither the entry nor the file
// changed, but for what the router needs.
func (s *Set) inspectModel(e catalog.Model) (*served, error) {
	file := fileID(e.Model)
	for _, m := range s.models {
		was := m.of
		was.Aliases, was.Keys, was.Class, was.Load = e.Aliases, e.Keys, e.Class, e.Load
		if m.file == file && reflect.DeepEqual(was, e) && s.limits().Check(m.need) == nil {
			same := *m
			same.of = e
			return &same, nil
		}
	}
	m := &served{of: e, source: &source{set: s, entry: e}, file: file}
	m.source.file.Store(&file)
	o, err := m.source.open(func(string) {})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	m.need = o.need
	m.info, err = o.info()
	return m, err
}

// checkPinned returns an error if the pinned models do not fit the budget together, or a model does
// not fit next to them.
func (s *Set) checkPinned(models []*served) error {
	pinned := modelcache.Memory{}
	for _, m := range models {
		if m.of.Load == catalog.Pinned {
			for node, n := range m.need {
				pinned[node] += n
			}
		}
	}
	if err := s.limits().Check(pinned); err != nil {
		return exit.Usage(fmt.Errorf("%s: the pinned models together: %w; raise memory, or pin fewer models",
			s.o.Path, err))
	}
	for _, m := range models {
		if m.of.Load == catalog.Pinned {
			continue
		}
		all := modelcache.Memory{}
		for _, part := range []modelcache.Memory{pinned, m.need} {
			for node, n := range part {
				all[node] += n
			}
		}
		if err := s.limits().Check(all); err != nil {
			return exit.Usage(fmt.Errorf("%s: model %s does not fit next to the pinned models: %w; raise memory, or "+
				"pin fewer models", s.o.Path, m.of.Name, err))
		}
	}
	return nil
}
