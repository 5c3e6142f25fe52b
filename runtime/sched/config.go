package sched

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
)

// Defaults of Config, which flags and default plans use too.
const (
	DefaultPolicy   = "sandwich"
	DefaultChunk    = 512 // long enough to be compute-bound, short enough to interleave decode steps
	DefaultQuantum  = 0.75
	DefaultBound    = 10 * time.Millisecond
	DefaultAging    = 30 * time.Second
	DefaultMixedCap = 3

	defaultSlice = 50 * time.Millisecond
)

// Sets is the number of sets of activations of a lane that runs prefills. One set keeps a halted
// prefill while other forwards use the other set.
const Sets = 2

// Config configures a Scheduler and does not change during its life. A zero field takes the default
// stated after its description.
type Config struct {
	// KV cache: the number of blocks of one store that keeps every position, or a list of stores.
	Blocks int            // of kvcache.BlockTokens positions
	Stores []kvcache.Spec // replaces Blocks

	Lanes      []Lane // streams of forwards; one lane of the cores for both phases
	MaxRunning int    // sequences of one request class that run at once, hence rows of a decode batch; 1
	Queue      int    // waiting requests of each class; more are rejected
	Chunk      int    // most tokens of a prefill chunk; DefaultChunk
	LogitRows  int    // most tokens of a chunk if the logits of all of them are wanted; 1

	// Texts is for models that generate nothing: requests end with their prefill. A prefill packs
	// other texts of its class that fit into the rest of Chunk.
	Texts bool
	Whole bool // a prefill is never divided into chunks, and no prefix is shared

	// BatchRows is the number of rows up to which drafted tokens fill a decode batch; MaxRunning,
	// which is also the least.
	BatchRows int
	// Allot sets the rows of drafts that share the free rows of a decode batch; by default they
	// take them in order.
	Allot func(drafts []Draft, free int)
	// CopyStates copies recurrent states after each token of a draft, as far as blocks can be
	// spared. Otherwise accepted tokens of a draft that is rejected in part are computed again.
	CopyStates bool

	Policy   string        // a name in Policies(); DefaultPolicy
	MixedCap int           // rows of a decode batch of both classes without predicted times; DefaultMixedCap
	Aging    time.Duration // a proactive request without progress for so long has aged; DefaultAging, negative: never

	// DecodesBetweenChunks is the number of decode batches between two prefill chunks while there
	// is decode work; 1.
	DecodesBetweenChunks int

	Quantum float64       // time of proactive prefill per time of reactive decoding; DefaultQuantum
	Bound   time.Duration // longest predicted op of a prefill that may halt: longer ones are cut; DefaultBound
	TPOT    time.Duration // bound of the predicted time of a decode batch of both classes; 0: MixedCap applies
	Slice   time.Duration // time slice of the policy share; 50 ms

	// Contends reports whether a prefill of n rows after pos positions and a decode batch are
	// predicted to slow each other down on two lanes, because both are bound by memory that the
	// lanes share. If they have different classes, the less urgent one then waits, or a proactive
	// prefill runs in quanta, as on one lane. nil: lanes share no memory.
	Contends func(pos, n, rows, positions int) bool

	// NoPreemption lets proactive prefills run to the end of their chunk. NoPiggyback runs no
	// proactive work next to reactive decoding before it has aged. They are for comparisons.
	NoPreemption, NoPiggyback bool

	// Forecast predicts the time of a decode step from its rows and the number of positions that
	// they attend to together. It returns 0 if it has no prediction. nil predicts nothing.
	Forecast func(rows, positions int) time.Duration
}

func (c Config) withDefaults() Config {
	set := func(v *int, d int) {
		if *v < 1 {
			*v = d
		}
	}
	set(&c.MaxRunning, 1)
	set(&c.Chunk, DefaultChunk)
	set(&c.LogitRows, 1)
	set(&c.MixedCap, DefaultMixedCap)
	set(&c.DecodesBetweenChunks, 1)
	c.BatchRows = max(c.BatchRows, c.MaxRunning)
	if c.Allot == nil {
		c.Allot = allotInOrder
	}
	if c.Lanes == nil {
		c.Lanes = []Lane{CoresLane()}
	}
	if !(c.Quantum > 0) {
		c.Quantum = DefaultQuantum
	}
	if c.Bound <= 0 {
		c.Bound = DefaultBound
	}
	if c.Slice <= 0 {
		c.Slice = defaultSlice
	}
	c.Blocks, c.Queue = max(c.Blocks, 0), max(c.Queue, 0)
	if c.Stores == nil {
		c.Stores = kvcache.Paged(c.Blocks)
	}
	if c.Aging == 0 {
		c.Aging = DefaultAging
	}
	return c
}

// allotInOrder is the default of Config.Allot: drafts take the free rows in order of precedence.
func allotInOrder(drafts []Draft, free int) {
	for i := range drafts {
		d := &drafts[i]
		d.Rows = min(d.Tokens, free)
		free -= d.Rows
	}
}

// contend reports whether work on two lanes may have to run one after the other.
func (c *Config) contend() bool { return c.Contends != nil || c.NoPiggyback }

func (c Config) residents() int { return Residents(c.MaxRunning) }

// Residents returns the most sequences that hold blocks at once if maxRunning of each class run: as
// many proactive ones again may be admitted because their first quantum is due.
func Residents(maxRunning int) int { return 3 * maxRunning }

// DecodeRows returns the most rows of a decode batch: those of maxRunning sequences and one of an
// aged request, or with drafts up to batchRows.
func DecodeRows(maxRunning, batchRows int) int { return max(maxRunning+1, batchRows) }

// Lane is a stream of forwards, of which one runs at a time: on the cores or on a device.
type Lane struct {
	Name   string
	Phases []phase.Phase // whose forwards it runs; each phase has exactly one lane
	Cores  bool          // runs on the CPU cores, which at most one lane does
}

// LaneID is the index of a lane in Config.Lanes.
type LaneID uint8

// NoLane is a LaneID of no lane.
const NoLane = LaneID(255)

// CoresLane returns a lane that runs the forwards of both phases on the cores.
func CoresLane() Lane { return Lane{Name: "cores", Phases: phase.All[:], Cores: true} }

// Serves reports whether the lane runs forwards of a phase.
func (l *Lane) Serves(p phase.Phase) bool { return slices.Contains(l.Phases, p) }

// lanesByPhase returns the lane of each phase. It refuses lists that leave a phase without a lane
// or give it several, lanes without a phase, and two lanes that would compete for the cores.
func lanesByPhase(lanes []Lane) (of [phase.Count]LaneID, err error) {
	of = [phase.Count]LaneID{NoLane, NoLane}
	cores := ""
	if len(lanes) > phase.Count {
		return of, fmt.Errorf("%d lanes for %d phases; give each phase one lane", len(lanes), phase.Count)
	}
	for i, l := range lanes {
		switch {
		case l.Name == "":
			return of, fmt.Errorf("lane %d has no name", i)
		case len(l.Phases) == 0:
			return of, fmt.Errorf("lane %q serves no phase; leave it out", l.Name)
		case l.Cores && cores != "":
			return of, fmt.Errorf("lanes %q and %q both run on the cores; use one lane for both", cores, l.Name)
		case l.Cores:
			cores = l.Name
		}
		for _, p := range l.Phases {
			switch {
			case int(p) >= phase.Count:
				return of, fmt.Errorf("lane %q serves an unknown %s", l.Name, p)
			case of[p] != NoLane:
				return of, fmt.Errorf("lanes %q and %q both serve %s; give each phase one lane", lanes[of[p]].Name,
					l.Name, p)
			}
			of[p] = LaneID(i)
		}
	}
	if p := slices.Index(of[:], NoLane); p >= 0 {
		return of, errors.New("no lane serves " + phase.Phase(p).String())
	}
	return of, nil
}
