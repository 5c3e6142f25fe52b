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
	"sandwich/internal/message"
	"sandwich/runtime/arbiter"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/mem"
	"sandwich/runtime/modelcache"
	"sandwich/runtime/modelrouter"
	"sandwich/runtime/pool/poolset"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/request"
	"sandwich/runtime/server/status"
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
	Detail   func(text string)                   // prints a line with --verbose; may be nil
	Stage    func(what string, share float64)    // receives the progress of the loads of Start
	// Describe describes the plan of a session for the page of the server; nil: not described.
	Describe func(s *session.Session, parallel int) *status.Plan
	Observe  func(used modelcache.Memory) // see modelcache.New; may be nil
}

// Set holds the models of a catalog. Methods may be called concurrently.
type Set struct {
	o      Options
	cache  *modelcache.Cache
	router *modelrouter.Router
	cores  *arbiter.Arbiter
	pools  poolset.Set       // of the threads of all engines
	free   modelcache.Budget // memory that was free at the start

	budget atomic.Pointer[modelcache.Budget]

	mu     sync.Mutex // guards the rest
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
	entry  *modelcache.Entry // nil: not added to the cache yet
}

// reserve is the part of the free memory, one in so many, that the default budget leaves to others.
const reserve = 16

// Open reads the catalog and the headers of all models, and checks that each model fits the budget.
// It loads none.
func Open(o Options) (*Set, error) {
	s := &Set{o: o, cores: arbiter.New(), free: freeMemory(mem.Available(), mem.AvailableOn)}
	s.cache = modelcache.New(s.free, max(1, o.Sizes.Queue), o.Observe)
	s.router = modelrouter.New(s.cache, o.Metrics)
	if _, err := s.reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// maxNodes is the number of NUMA nodes that Linux supports at most.
const maxNodes = 1024

// freeMemory returns the budget of a catalog without one: the free memory less a reserve, also on
// each NUMA node. free is the free memory in bytes, and on returns that of a node; both are -1 if
// unknown. Numbers of nodes may have gaps.
func freeMemory(free int64, on func(node int) int64) modelcache.Budget {
	less := func(n int64) int64 { return n - n/reserve }
	b := modelcache.Budget{Nodes: modelcache.Memory{}}
	if free >= 0 {
		b.Total = max(1, less(free)) // 0 is no limit
	}
	for node := range maxNodes {
		if n := on(node); n >= 0 {
			b.Nodes[node] = less(n)
		}
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
	return message.Plural(len(s.models), "model") + " of " + s.o.Path
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

// reload reads the catalog again and uses it; see Prepare.
func (s *Set) reload() (string, error) {
	p, err := s.Prepare()
	if err != nil {
		return "", err
	}
	return p.Commit(), nil
}

// Prepared is a catalog that was read and checked, with its models.
type Prepared struct {
	set    *Set
	budget modelcache.Budget
	models []*served
	list   []*modelrouter.Model // of models
	keys   []string
}

// Prepare reads the catalog again and checks it with its models. It changes nothing; Commit does.
// Another catalog must not be prepared in between.
func (s *Set) Prepare() (*Prepared, error) {
	c, err := catalog.Read(s.o.Path)
	if err != nil {
		return nil, exit.Usage(err)
	}
	p := &Prepared{set: s, budget: s.free}
	if c.Memory > 0 {
		p.budget.Total = c.Memory
	}
	for _, e := range c.Models {
		if err := p.add(e); err != nil {
			return nil, err
		}
	}
	return p, p.checkPinned()
}

// Commit makes the set serve the catalog, and returns a description of it. Models whose entry and
// file are unchanged stay loaded; removed and changed ones are unloaded when their requests have
// ended.
func (p *Prepared) Commit() string {
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.models
	s.models, s.keys = p.models, p.keys
	s.budget.Store(&p.budget)
	s.cache.SetBudget(p.budget)
	for i, m := range p.models {
		pinned := m.of.Load == catalog.Pinned
		if m.entry == nil {
			s.noteReplaced(m, before)
			m.entry = s.cache.Add(m.source, pinned)
			if before != nil && m.of.Load != catalog.OnDemand {
				m.entry.Preload()
			}
		}
		m.entry.Pin(pinned)
		p.list[i].Entry = m.entry
	}
	s.router.Set(p.list)
	for _, m := range before {
		if !s.has(m.entry) {
			m.entry.Retire()
		}
	}
	return fmt.Sprintf("%s from %s", message.Plural(len(p.models), "model"), s.o.Path)
}

// noteReplaced reports that a model of the catalog had another file before.
func (s *Set) noteReplaced(m *served, before []*served) {
	for _, old := range before {
		if old.of.Name == m.of.Name {
			m.source.noteReplaced(*old.source.version.Load(), *m.source.version.Load())
		}
	}
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

// add adds the model of an entry, with its API keys.
func (p *Prepared) add(e catalog.Model) error {
	m, err := p.inspect(e)
	if err != nil {
		return err
	}
	o := &p.set.o
	r := &modelrouter.Model{Info: m.info, Failed: func(err error) { o.Notice("warning: " + err.Error()) },
		Plan: m.source.plan.Load}
	r.Info.Aliases = e.Aliases
	if e.Class != "" {
		r.Info.Urgency, _ = request.ParseUrgency(e.Class)
	}
	if e.Keys != "" {
		lines, err := o.ReadKeys(e.Keys)
		if err != nil {
			return exit.Usage(m.source.wrap(err))
		}
		r.Keys = map[generation.Key]bool{}
		for _, line := range lines {
			key, _, _ := request.ParseKey(line)
			r.Keys[sha256.Sum256([]byte(key))] = true
		}
		p.keys = append(p.keys, lines...)
	}
	p.models, p.list = append(p.models, m), append(p.list, r)
	return nil
}

// inspect returns the model of an entry: the present one if neither the entry nor the file changed,
// but for what the router needs.
func (p *Prepared) inspect(e catalog.Model) (*served, error) {
	ctx := context.Background()
	s, file := p.set, fileID(ctx, e.Model)
	s.mu.Lock()
	present := s.models
	s.mu.Unlock()
	for _, m := range present {
		was := m.of
		was.Aliases, was.Keys, was.Class, was.Load = e.Aliases, e.Keys, e.Class, e.Load
		if m.file == file && reflect.DeepEqual(was, e) && p.budget.Check(m.need) == nil {
			same := *m
			same.of = e
			return &same, nil
		}
	}
	m := &served{of: e, source: &source{set: s, entry: e}, file: file}
	o, err := m.source.open(ctx, func(string) {}, &p.budget)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	m.source.version.Store(&version{file, o.hash})
	m.need = o.need
	m.info, err = o.info()
	return m, err
}

// checkPinned returns an error if the pinned models do not fit the budget together, or a model does
// not fit next to them.
func (p *Prepared) checkPinned() error {
	pinned := modelcache.Memory{}
	for _, m := range p.models {
		if m.of.Load == catalog.Pinned {
			for node, n := range m.need {
				pinned[node] += n
			}
		}
	}
	if err := p.budget.Check(pinned); err != nil {
		return exit.Usage(fmt.Errorf("%s: the pinned models together: %w; raise memory, or pin fewer models",
			p.set.o.Path, err))
	}
	for _, m := range p.models {
		if m.of.Load == catalog.Pinned {
			continue
		}
		all := modelcache.Memory{}
		for _, part := range []modelcache.Memory{pinned, m.need} {
			for node, n := range part {
				all[node] += n
			}
		}
		if err := p.budget.Check(all); err != nil {
			return exit.Usage(fmt.Errorf("%s: model %s does not fit next to the pinned models: %w; raise memory, or "+
				"pin fewer models", p.set.o.Path, m.of.Name, err))
		}
	}
	return nil
}
