// Package variants compiles additional kernels for a device in the background, such as those for
// the number of rows of a prompt that waits. A caller uses a variant if it is ready, and else the
// kernel that it would use without this package. Variants that are not used expire.
package variants

import (
	"errors"
	"slices"
	"sync"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
)

// Options configures a Cache. Zero numbers take the defaults stated after their descriptions.
type Options struct {
	Device device.Device
	Most   int // variants that exist or wait; further ones are not compiled; 128
	Queue  int // variants that wait; the oldest ones that are not urgent are dropped; 32
	Idle   int // calls of Prepare after which a variant that was not used in between expires; 64
	// Ended is called from the goroutine that compiles when a variant is ready, or with the reason
	// why it cannot be used. It may be nil.
	Ended func(kernel string, err error)
}

// Job describes a variant by a comparable key.
type Job[K comparable] struct {
	Key    K
	Kernel func() (*devgen.Kernel, error)
	// Check returns why the results of the compiled kernel cannot be used. It may be nil.
	Check func(p device.Program) error
}

// Stats counts variants since New.
type Stats struct {
	Compiled int64 // and ready
	Refused  int64 // by the compiler or a check
	Expired  int64 // freed because they were not used
	Dropped  int64 // not compiled because there were too many
	Launches int64 // of variants
}

// Cache compiles variants one at a time in a goroutine, which runs while there is work. Its methods
// may be called concurrently.
type Cache[K comparable] struct {
	options Options

	mu      sync.Mutex // guards the fields up to the next blank line
	entries map[K]*entry
	waiting []Job[K]         // the urgent ones first, those of each kind by call, the newest first
	urgent  int              // of waiting
	dead    []device.Program // to be freed
	calls   int              // of Prepare
	crowded bool             // a variant was dropped since the last Sweep
	running bool
	closed  bool
	stats   Stats

	compiling sync.WaitGroup
}

// entry is a variant that waits, is being compiled, is ready or was refused.
type entry struct {
	program device.Program // nil: not ready
	ended   bool
	used    int // the last call of Prepare by which it was wanted or after which it was used
}

// New returns an empty cache.
func New[K comparable](o Options) *Cache[K] {
	if o.Most <= 0 {
		o.Most = 128
	}
	if o.Queue <= 0 {
		o.Queue = 32
	}
	if o.Idle <= 0 {
		o.Idle = 64
	}
	return &Cache[K]{options: o, entries: map[K]*entry{}}
}

// Prepare queues variants that do not exist yet. Urgent ones are compiled before the others, and
// those of later calls before earlier ones, whose callers may run already. It does not block.
func (c *Cache[K]) Prepare(urgent bool, jobs ...Job[K]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.calls++
	at := c.urgent
	if urgent {
		at = 0
	}
	for _, j := range jobs {
		if e := c.entries[j.Key]; e != nil {
			e.used = c.calls
			continue
		}
		if len(c.entries) >= c.options.Most {
			c.stats.Dropped++
			c.crowded = true
			continue
		}
		c.entries[j.Key] = &entry{used: c.calls}
		c.waiting = slices.Insert(c.waiting, at, j)
		at++
		if urgent {
			c.urgent++
		}
	}
	for ; len(c.waiting) > c.options.Queue; c.stats.Dropped++ {
		last := len(c.waiting) - 1
		delete(c.entries, c.waiting[last].Key)
		c.waiting = c.waiting[:last]
		c.urgent = min(c.urgent, last)
	}
	c.start()
}

// start runs the goroutine if there is work for it. The mutex is held.
func (c *Cache[K]) start() {
	if !c.running && len(c.waiting)+len(c.dead) > 0 {
		c.running = true
		c.compiling.Go(c.run)
	}
}

// Ready returns the program of a variant, or nil if it is not ready. The caller may submit it until
// the next Sweep.
func (c *Cache[K]) Ready(key K) device.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil || e.program == nil {
		return nil
	}
	e.used = c.calls
	c.stats.Launches++
	return e.program
}

// Sweep removes variants that were not used for a while. The caller says by it that no submission
// uses a variant. After a Prepare that found no room they expire sooner.
func (c *Cache[K]) Sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.options.Idle
	if c.crowded {
		idle, c.crowded = idle/8, false
	}
	for key, e := range c.entries {
		if !e.ended || c.calls-e.used <= idle {
			continue
		}
		delete(c.entries, key)
		c.stats.Expired++
		if e.program != nil {
			c.dead = append(c.dead, e.program)
		}
	}
	c.start()
}

// Stats returns a snapshot.
func (c *Cache[K]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// run frees and compiles until there is nothing to do.
func (c *Cache[K]) run() {
	for {
		c.mu.Lock()
		dead := c.dead
		c.dead = nil
		if len(dead) == 0 && (len(c.waiting) == 0 || c.closed || c.options.Device.Err() != nil) {
			c.running = false
			c.mu.Unlock()
			return
		}
		var job *Job[K]
		if len(dead) == 0 {
			job = &Job[K]{}
			*job = c.waiting[0]
			c.waiting, c.urgent = c.waiting[1:], max(0, c.urgent-1)
		}
		c.mu.Unlock()
		for _, p := range dead {
			_ = p.Free() // an error means that the device is lost
		}
		if job != nil {
			c.end(job)
		}
	}
}

// end compiles a variant and makes it ready, or notes that it was refused.
func (c *Cache[K]) end(job *Job[K]) {
	name, p, err := c.compile(job)
	c.mu.Lock()
	e := c.entries[job.Key]
	e.program, e.ended = p, true
	if err == nil {
		c.stats.Compiled++
	} else {
		c.stats.Refused++
	}
	c.mu.Unlock()
	if c.options.Ended != nil {
		c.options.Ended(name, err)
	}
}

// compile returns a checked program and the name of its kernel.
func (c *Cache[K]) compile(job *Job[K]) (name string, p device.Program, err error) {
	k, err := job.Kernel()
	if err != nil {
		return "", nil, err
	}
	if p, err = c.options.Device.Compile(k); err != nil {
		return k.Name, nil, err
	}
	if job.Check != nil {
		if err := job.Check(p); err != nil {
			return k.Name, nil, errors.Join(err, p.Free())
		}
	}
	return k.Name, p, nil
}

// Close waits until nothing is being compiled and frees all variants. No submission may use them.
func (c *Cache[K]) Close() (err error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.compiling.Wait()
	for _, e := range c.entries {
		if e.program != nil {
			err = errors.Join(err, e.program.Free())
		}
	}
	c.entries, c.waiting = nil, nil
	return err
}
