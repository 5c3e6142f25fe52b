package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/profiles"
	"sandwich/profiles/occupancy"
	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/device"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/engine/sampling"
	"sandwich/runtime/engine/traffic"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/offload"
	"sandwich/runtime/offload/split"
	"sandwich/runtime/offload/unified"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/runtime/prefix"
	"sandwich/runtime/sched"
)

// Options configures New. Functions that are nil are not called.
type Options struct {
	forward.Options
	Context  int // limit of a request in tokens, prompt and answer
	Parallel int // requests that run at once
	Queue    int // requests that may wait in addition
	Service
	Speculation drafting.Options
	Accelerator DeviceOptions
	Prefixes    PrefixOptions

	// Cores shares the cores with other engines, unless nil. Turns (exec.Options) then does so for
	// the load and for other background work, which may run next to forwards: it is another client.
	Cores Cores

	IsEnd     func(id int32) bool // reports whether a token ends an answer or a message
	Observe   func(f Forward)     // is called after each forward, not concurrently; must not block
	Profile   *profiles.Profile   // its ceilings predict ops that have not run yet; may be nil
	Note      func(text string)   // is called with a sentence when the available CPUs change
	Displaced func(err error)     // is called with *api.UnavailableError when no PU of the plan is left

	// Occupancy moves workers away from PUs that other processes use. It needs Profile; nil leaves
	// workers on the PUs of the plan.
	Occupancy occupancy.Monitor
}

// Service configures how reactive and proactive requests share the engine. The fields are those of
// sched.Config with the same names.
type Service struct {
	Policy   string
	MixedCap int
	Aging    time.Duration
	Quantum  float64
	Bound    time.Duration
	TPOT     time.Duration

	NoPreemption, NoPiggyback bool
}

// PrefixOptions configures the prefix store of an engine.
type PrefixOptions struct {
	Store *disk.Store // nil: prefixes are not stored
	// Always loads what is stored even if computing it is predicted to be faster, for measurements.
	Always bool
	Model  string // name of the model, for lists
}

// DeviceOptions configures forwards on a device. The zero value uses the cores alone.
type DeviceOptions struct {
	Device device.Device // nil: the cores alone; the engine closes it only when it is lost
	Name   string        // of its lane
	Phases []phase.Phase // whose forwards it runs; the cores run those of the others. nil: by measurement
	// ExpertsOnCores leaves the routing and the products of experts of these forwards to the cores,
	// so that forwards of both phases run one after the other.
	ExpertsOnCores bool
	// Rounding permits a device whose results differ by rounding from those of the cores. If it is
	// lost, requests that have started fail with *api.LostDeviceError. It divides no
	// prompts.
	Rounding bool
	// Check measures forwards on both sides and leaves those of Phases to the cores in which the
	// device is slower.
	Check bool
	// Chose is called before New returns if phases were measured. nil is not called.
	Chose func(t DeviceTimes, phases []phase.Phase)
	// Divide lets the cores compute the last rows of reactive prompts while the device computes the
	// first, where both together are faster. The device must run prefill and the cores decode.
	Divide bool
	// Static compiles kernels for the rows of prompts in the background while the prompts wait. A
	// prompt uses those that are ready when it runs.
	Static bool
	// IgnoreTraffic lets forwards of different classes run on the device and on the cores at the
	// same time even if they are predicted to be slowed by memory that both share.
	IgnoreTraffic bool
	// Optional uses the cores alone if the device cannot run the model, after a call of Refused,
	// which may be nil. Otherwise New returns the error.
	Optional bool
	Refused  func(err error)
	// Memory, unless nil, is the allocator of the runner's memory (exec.Options.Memory), which the
	// device uses too where it can.
	Memory *unified.Memory
	// Note is called with a sentence about the memory of a device that shares memory with the
	// cores. nil is not called.
	Note       func(text string)
	measured   *DeviceTimes // instead of a measurement, for tests
	needsCores bool         // set by openDevice: the cores compute a part of each forward on the device
	// Lost is called by the loop when the device fails and its requests continue on the cores. nil
	// is not called.
	Lost func(err error)
}

// DeviceTimes has the measured time of a forward of each phase: a chunk of a prompt, and one token.
type DeviceTimes struct {
	Rows   int // of the chunk
	Cores  [phase.Count]time.Duration
	Device [phase.Count]time.Duration
}

// Engine runs many requests at once on one Runner. One goroutine, on the thread of worker 0, drives
// the scheduler with the wall clock and runs the forwards that it plans. Exported methods may be
// called concurrently.
type Engine struct {
	runner  *forward.Runner
	isEnd   func(id int32) bool
	context int
	buffer  *sampling.Buffer
	recent  recentTexts
	stored  storedPrefixes
	watch   watch // of the available CPUs

	drafting *drafting.Drafting // guarded by mu, except for Open

	mu         sync.Mutex // guards the fields up to the next blank line
	sched      *sched.Scheduler
	driver     *sched.Driver
	jobs       map[sched.ID]*job
	lastID     sched.ID
	closing    bool
	failed     error
	counts     Counts
	embedCalls int // running calls of Embed
	maxEmbeds  int // limit of embedCalls

	cores      lane // forwards that run on the cores
	onDevice   lane // forwards of the phases that the device serves, if there is one
	lanes      lanes
	leader     *pool.Leader
	turns      Cores // Options.Cores
	observe    func(f Forward)
	lost       func(err error)
	wake       chan struct{} // capacity 1
	iterations atomic.Uint64 // iterations of the loop
	idle       atomic.Bool   // the loop waits for a request
	ended      chan struct{}
	begin      time.Time
	once       sync.Once // of Close

	accelerates DeviceOptions // of onDevice
	// traffic measures the memory that the device and the cores share; nil: they share none.
	// contend is its method, which tests replace.
	traffic *traffic.Monitor
	contend func(cores, device traffic.Work) bool
}

// job is a request that has not ended.
type job struct {
	id        sched.ID
	req       *api.Request
	sampler   *sampling.Sampler
	out       mailbox
	placed    chan struct{} // closed when the scheduler has queued the job; nil if no caller waits for it
	generated int           // tokens
	limit     int           // of generated
	scored    int           // prompt positions whose log probabilities have been sent
	computed  int           // prompt positions
	arrived   time.Time
	started   time.Time // start of its first forward; set before the first token
	cached    int       // prompt positions that were cached at started

	cachedOnArrival int     // prompt positions; set if Request.Queued is set
	storedOnArrival int     // prompt positions that will be loaded from disk
	known           []int32 // tokens of the event that goes to the scheduler
	drafts          drafting.Request
	output          []int32    // generated tokens, for recentTexts
	hit             prefix.Hit // of its prompt on disk
	stopLoad        func()     // cancels the load of hit; may be nil
	loadBegan       time.Time  // of hit
	loadTime        time.Duration
	loaded          int       // tokens of hit that were loaded
	noted           bool      // its prompt was passed to the prefix store
	resumeAt        int       // op at which its halted prefill continues
	vector          []float32 // output row of a pooled model; set before out is closed
}

// lane runs the forwards of one lane of the scheduler: on the cores, from the thread of worker 0,
// or on a device, in a goroutine of its own. Its fields describe the forward in flight and what the
// lane has learned from earlier ones. The requests and the scheduler belong to the engine.
type lane struct {
	e       *Engine           // that the lane is a part of
	device  *offload.Runner   // nil: the lane runs on the cores
	batch   kvcache.Batch     // of the forward in flight
	class   api.Class         // of its most urgent request
	set     int               // of activations of that forward
	base    int               // of the sets on the cores that are the lane's own
	shared  [phase.Count]bool // on the cores: phases whose forwards run on the device but for the experts
	sharing bool              // the last forward was one of them
	onCores bool              // the logits of the last forward of the device's lane are on the cores
	again   bool              // the lane has no sets of its own: a resumed forward starts again
	gate    forwardGate       // of the forward in flight
	costs   *cost.Table       // of ops, measured in this process
	cuts    [sched.Sets][]uint16
	margin  margin
	upload  [sched.Sets]*offload.Upload // of halted forwards and the one in flight, to the device
	next    int                         // step from which the forward runs, then the step at which it ended
	took    time.Duration               // duration of the last forward
	ended   time.Time                   // end of the last forward; zero after the engine was idle
	gap     time.Duration               // between the last two forwards
}

// lanes runs the forwards of a device, which run concurrently, together with those of the cores. It
// implements sched.Executor. A goroutine per forward lands it and so starts the next one, also
// while the loop computes a forward on the cores. When the device fails, its forwards run on the
// cores, one after the other with those of the cores' lane. The lanes themselves are fields of the
// engine: Engine.onDevice and Engine.cores.
type lanes struct {
	e       *Engine
	name    string           // of the device
	waiting [2]*sched.Action // forwards to run on the cores, by lane; guarded by Engine.mu
	changed chan struct{}    // has a token if a forward was added to waiting or landed
	failed  chan failure     // of the forward on the device
	ctx     context.Context  // of forwards on the device
	cancel  context.CancelFunc
	running sync.WaitGroup // forwards on the device, and the end of a lost one
	queued  atomic.Int32   // forwards in waiting
	divided dividedPrefill
}

// deviceLane is the lane of the device, the first one.
const deviceLane = sched.LaneID(0)

// failure says how a forward on the device failed.
type failure struct {
	err      error
	panicked any // value of a panic of the code that took its results
}

// dividedPrefill is the state of a prompt that the device and the cores compute together. Engine.mu
// guards its fields but the first two.
type dividedPrefill struct {
	enabled   bool
	slice     time.Duration // of the next step, if a forward of the cores waits; used by the loop
	balance   split.Balance
	wave      *offload.Wavefront // nil: none
	predicted time.Duration      // of the cores' part
	took      time.Duration      // of the cores' part and of the forwards in between
	rows      int                // of the device's part
	share     float64            // time of the cores' part per time of forwards in between
	paused    pausedPrefill
	resumes   int     // of divided forwards
	quantum   float64 // share of the cores' part of proactive prompts
}

// pausedPrefill is a divided forward that halted. Its activations are kept until it resumes.
type pausedPrefill struct {
	wave            *offload.Wavefront // nil: none
	id              sched.ID
	set, rows       int
	predicted, took time.Duration
}

// storedPrefixes is the prefix store of an engine and the loads from it.
type storedPrefixes struct {
	cache *prefix.Cache // nil: none
	ctx   context.Context
	stop  context.CancelFunc
	loads sync.WaitGroup
	// checks has a channel for each imported prefix that is being compared, by the key of its last
	// block. The channel is closed at the end.
	checks sync.Map
	// always is PrefixOptions.Always.
	always bool
}

// deviceRuns reports whether the device runs the forwards of a phase, possibly with parts of them
// on the cores. There must be a device, or one that was lost.
func (e *Engine) deviceRuns(p phase.Phase) bool {
	if e.accelerates.needsCores {
		return e.cores.shared[p]
	}
	return e.sched.Lanes()[deviceLane].Serves(p)
}

// costsOf returns the table that predicts the forwards of a phase: that of the device if it runs
// them, else that of the cores. Engine.mu is held.
func (e *Engine) costsOf(p phase.Phase) *cost.Table {
	if e.onDevice.device != nil && e.deviceRuns(p) {
		return e.onDevice.costs
	}
	return e.cores.costs
}

// finite reports whether the numbers of LogitRows[i] of the last forward of the lane are finite.
func (c *lane) finite(i int) bool {
	return c.device != nil || c.sharing || c.e.runner.Sound(i) // the device's Forward has checked them
}

// logits returns the logits of LogitRows[i] of the last forward of the lane.
func (c *lane) logits(i int) []float32 {
	switch {
	case c.device != nil && !c.onCores:
		return c.device.Logits(i)
	case c.sharing:
		return c.e.onDevice.device.Logits(i)
	}
	return c.e.runner.Logits(i)
}

// minTexts is the least limit of texts that run at once on a pooled model, whatever
// Options.Parallel is: short texts fill a forward only together.
const minTexts = 64

// maxTexts is the limit of texts per request.
const maxTexts = 1 << 20

// Pooled reports whether the model computes vectors or scores of texts. Such an engine supports
// Embed and not Generate.
func (e *Engine) Pooled() bool { return e.runner.Model.Pooled() }

// poke wakes the loop if it waits.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// inVocabulary returns an error for a prompt with an id outside the vocabulary.
func (e *Engine) inVocabulary(prompt []int32) error {
	vocab := e.runner.Model.Dims.Vocab
	for i, id := range prompt {
		if id < 0 || int(id) >= vocab {
			const text = "token %d of the prompt has id %d, outside the vocabulary of %d"
			return &api.InvalidError{Message: fmt.Sprintf(text, i, id, vocab)}
		}
	}
	return nil
}

// ends returns the positions of a prompt at which a later prompt with the same beginning is likely
// to diverge: after each message, and at the end.
func (e *Engine) ends(prompt []int32) (list []int) {
	if e.Pooled() {
		return nil
	}
	for i, id := range prompt {
		if e.isEndToken(id) {
			list = append(list, i+1)
		}
	}
	return append(list, len(prompt))
}

// isEndToken reports whether a token ends an answer or a message.
func (e *Engine) isEndToken(id int32) bool { return e.isEnd != nil && e.isEnd(id) }

// cancel ends a job that has not ended.
func (e *Engine) cancel(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[j.id] != j {
		return
	}
	delete(e.jobs, j.id)
	if j.stopLoad != nil {
		j.stopLoad()
	}
	e.driver.Post(sched.Event{Kind: sched.Cancel, ID: j.id})
	e.poke()
}
