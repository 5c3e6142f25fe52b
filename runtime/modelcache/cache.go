// Package modelcache keeps models in memory within a budget. It loads a model when a request needs
// it, and unloads the least recently used models to make room, except pinned ones and those with
// running requests.
//
// A Cache has an Entry for each model. One model loads at a time. The memory of a model counts from
// before its load until after its end, so that the budget holds at every moment.
package modelcache

import (
	"context"
	"sync"
	"time"

	"sandwich/runtime/server/generation"
)

// Source opens a model.
type Source interface {
	// Open reads a model, but not its weights, and chooses how it will run.
	Open(ctx context.Context) (Opened, error)
}

// Opened is a model that can be loaded. The cache calls either Load or Close.
type Opened interface {
	// Need returns the memory that the model will use.
	Need() Memory
	// Load loads the model. It calls progress with the completed share, 0 to 1, from several
	// goroutines. When ctx ends, it stops soon with the cause of ctx.
	Load(ctx context.Context, progress func(share float64)) (Instance, error)
	Close()
}

// Instance is a loaded model.
type Instance interface {
	generation.Generator
	Ready() error // why it accepts no requests at present, or nil
	Used() Memory
	Close()
}

// Cache is a set of models that share a budget of memory. Methods may be called concurrently.
type Cache struct {
	limit   int           // requests that may wait for a model
	loading chan struct{} // has a token while a model loads
	observe func(used Memory)

	mu      sync.Mutex
	budget  Budget
	used    Memory // of loaded and loading models
	entries []*Entry
	clock   int64         // counts uses
	changed chan struct{} // closed when a model may be unloaded, or was
	counts  Counts
}

// Counts has the numbers of loads of a cache.
type Counts struct {
	Loads, Failed, Unloads int64
	Used                   int64 // bytes
}

// New returns a cache without models. limit is the number of requests that may wait for each model.
// observe, unless nil, is called with the memory in use whenever it changes; it must not call the
// cache.
func New(b Budget, limit int, observe func(used Memory)) *Cache {
	return &Cache{budget: b, limit: limit, observe: observe, loading: make(chan struct{}, 1), used: Memory{},
		changed: make(chan struct{})}
}

// SetBudget changes the budget for further loads.
func (c *Cache) SetBudget(b Budget) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget = b
	c.broadcast()
}

// Counts returns the numbers of loads and the memory in use.
func (c *Cache) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	n.Used = c.used.Total()
	return n
}

// Close unloads all models. It waits for those that are in use.
func (c *Cache) Close() {
	c.mu.Lock()
	entries := append([]*Entry(nil), c.entries...)
	c.mu.Unlock()
	for _, e := range entries {
		e.Retire()
	}
	for _, e := range entries {
		<-e.gone
	}
}

// broadcast wakes loads that wait for memory. c.mu is held.
func (c *Cache) broadcast() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// account adds memory to that in use, and subtracts other memory from it. c.mu is held.
func (c *Cache) account(add, sub Memory) {
	c.used = c.used.plus(add, 1).plus(sub, -1)
	if c.observe != nil {
		c.observe(c.used)
	}
}

// tick returns the number of a use. c.mu is held.
func (c *Cache) tick() int64 {
	c.clock++
	return c.clock
}

// defaultRetry is the time after which a refused request may try again if no load has been timed.
const defaultRetry = 2 * time.Second
