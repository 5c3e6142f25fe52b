// Package poolset lets the users of a process share pools of worker threads: those that need
// workers on the same PUs use one pool, one after the other.
package poolset

import (
	"slices"
	"sync"

	"sandwich/runtime/pool"
)

// Set has the pools in use. The zero value is ready. Methods may be called concurrently.
type Set struct {
	mu   sync.Mutex
	list []*entry
}

// entry is a pool and those that use it, in the order of Open.
type entry struct {
	pool    *pool.Pool
	pus     []int
	options pool.Options
	uses    []*Use
}

// Use is the right to use a pool until Close.
type Use struct {
	Pool *pool.Pool

	of    *Set
	entry *entry
}

// Open returns a pool with a worker on each of the PUs, in this order, with the given options. It
// starts one unless another user has such a pool. Leaders of the pool use pool.Pool.LeadShared.
func (p *Set) Open(pus []int, o pool.Options) (*Use, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.list, func(e *entry) bool { return slices.Equal(e.pus, pus) && e.hasOptions(&o) })
	if i < 0 {
		started, err := pool.New(pus, o)
		if err != nil {
			return nil, err
		}
		i = len(p.list)
		p.list = append(p.list, &entry{pool: started, pus: slices.Clone(pus), options: o})
	}
	e := p.list[i]
	u := &Use{Pool: e.pool, of: p, entry: e}
	e.uses = append(e.uses, u)
	return u, nil
}

// hasOptions reports whether the pool has the given options.
func (e *entry) hasOptions(o *pool.Options) bool {
	return e.options.Spin == o.Spin && e.options.Pin == o.Pin && slices.Equal(e.options.Class, o.Class) &&
		slices.Equal(e.options.Slow, o.Slow)
}

// First reports whether this user opened the pool before all others that use it. Of the users of a
// pool, the first one moves its workers.
func (u *Use) First() bool {
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	return len(u.entry.uses) > 0 && u.entry.uses[0] == u
}

// Close ends the use; the last user ends the workers. The user must not have the pool, and no
// worker may still work for it (pool.Pool.Gather). Further calls do nothing.
func (u *Use) Close() {
	p, e := u.of, u.entry
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(e.uses, u)
	if i < 0 {
		return
	}
	if e.uses = slices.Delete(e.uses, i, i+1); len(e.uses) == 0 {
		p.list = slices.DeleteFunc(p.list, func(o *entry) bool { return o == e })
		e.pool.Close()
	}
}

// Pool describes a pool in use.
type Pool struct {
	PUs   []int // of its workers
	Users int
}

// List returns the pools in use, in the order in which they were started.
func (p *Set) List() []Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Pool
	for _, e := range p.list {
		out = append(out, Pool{slices.Clone(e.pus), len(e.uses)})
	}
	return out
}
