package sched

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"sandwich/runtime/kvcache"
)

// driver plays the engine on a virtual clock. It keeps its own state of every request and block and
// fails on any action that contradicts it.
type driver struct {
	s        *Scheduler
	cfg      Config
	rng      *rand.Rand
	now      time.Duration
	cost     func(a *Action) time.Duration
	live     map[ID]*client
	content  [][][]int32 // by store and block: the whole text up to the last position written
	batch    kvcache.Batch
	events   []Event
	flight   *Action
	open     bool // a prefill that halts for reactive arrivals
	halting  bool // it was told to halt
	ends     time.Duration
	stopped  ID // request whose prefill halted at an op
	halted   Action
	sinceEnd map[ID]string
	forwards int
	packed   int           // forwards of several texts
	retry    time.Duration // of the last refusal
	record   io.Writer     // gets every action; may be nil

	recomputed int // positions of live requests

	ranks          *rand.Rand // of which priorities are drawn; nil: all have one
	drafts         *rand.Rand // of which guesses are made; nil: of none
	guessed, right int        // rows of guesses, and of right ones
	parts          int        // right rows of other guesses whose states were copied

	stored  *rand.Rand // of which prompts are stored outside the cache; nil: none
	loading []load     // in progress
	loaded  int
}

type client struct {
	class     Class
	text      []int32 // prompt and sampled tokens
	prompt    int
	want      int // tokens to sample in all
	computed  int
	reached   int // most that was ever computed
	kept      int // states in the draft of the last forward that were copied
	arrived   time.Duration
	progress  time.Duration
	forwards  int // forwards of any request since arrival
	preempted int
	draft     []int32 // behind the text
}

func mustNew(cfg Config) *Scheduler {
	s, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return s
}

func newDriver(cfg Config, rng *rand.Rand) *driver {
	s := mustNew(cfg)
	d := &driver{
		s: s, cfg: s.cfg, rng: rng, live: map[ID]*client{}, sinceEnd: map[ID]string{},
		cost: func(*Action) time.Duration { return time.Millisecond },
	}
	for _, store := range d.cfg.Stores {
		d.content = append(d.content, make([][]int32, store.Blocks))
	}
	return d
}

func (d *driver) arrive(id ID, class Class, prompt []int32, want int) {
	d.live[id] = &client{class: class, text: slices.Clone(prompt), prompt: len(prompt), want: want, arrived: d.now,
		progress: d.now}
	d.events = append(d.events, Event{Kind: Arrive, ID: id, Class: class, Prompt: prompt, MaxTokens: want,
		Priority: d.priority(), Stored: d.storedOf(prompt)})
}

func (d *driver) cancel(id ID) {
	delete(d.live, id)
	d.sinceEnd[id] = "cancelled"
	d.events = append(d.events, Event{Kind: Cancel, ID: id})
	d.lose(id)
}

// land ends the forward in flight and samples.
func (d *driver) land() {
	a := d.flight
	d.flight = nil
	d.events = append(d.events, Event{Kind: Done})
	for _, rows := range a.rows() {
		id, n := rows.ID, rows.N
		c := d.live[id]
		if c == nil {
			continue // cancelled meanwhile
		}
		held := 0 // guesses that were right
		if pending := len(c.text) - c.computed; a.Kind == Decode && n > pending {
			drafted := n - pending
			held = min(d.drafts.IntN(drafted+1), c.want-(len(c.text)-c.prompt)-1)
			d.guessed, d.right = d.guessed+drafted, d.right+held
			switch n = pending + held; {
			case held == drafted || !d.states():
			case held <= c.kept:
				d.parts += held
			default:
				n = pending // accepted tokens are computed again
			}
		}
		d.recomputed += max(0, min(c.reached, c.computed+n)-c.computed)
		c.computed += n
		c.reached = max(c.reached, c.computed)
		if c.computed < len(c.text) {
			continue
		}
		if d.cfg.Texts {
			delete(d.live, id)
			d.sinceEnd[id] = "finished"
			d.events = append(d.events, Event{Kind: Finish, ID: id})
			continue
		}
		c.text = append(append(c.text, c.draft[:held]...), int32(d.rng.IntN(2)))
		c.draft = nil
		c.progress = d.now
		if len(c.text)-c.prompt >= c.want {
			delete(d.live, id)
			d.sinceEnd[id] = "finished"
			d.events = append(d.events, Event{Kind: Finish, ID: id})
			continue
		}
		if d.drafts != nil {
			c.draft = prompt(ID(d.drafts.IntN(2)), 1+d.drafts.IntN(5))
		}
		drawn := slices.Clone(c.text[len(c.text)-held-1:])
		d.events = append(d.events, Event{Kind: Sampled, ID: id, Tokens: drawn, Draft: slices.Clone(c.draft)})
	}
}

// states reports whether there are recurrent states.
func (d *driver) states() bool {
	return slices.ContainsFunc(d.cfg.Stores, func(s kvcache.Spec) bool { return s.Kind == kvcache.Recurrent{} })
}

// rows returns the rows of a forward by request.
func (a *Action) rows() []Rows {
	if len(a.Rows) > 0 {
		return a.Rows
	}
	return []Rows{{a.ID, a.N}}
}

// halt stops the prefill in flight at an op.
func (d *driver) halt() {
	a := d.flight
	d.flight = nil
	d.events = append(d.events, Event{Kind: Stopped})
	if d.open && d.wanted(a) == len(a.rows()) {
		d.stopped, d.halted = a.ID, *a
	}
}

// step calls Step with the pending events and checks its actions.
func (d *driver) step() error {
	acts, before := d.s.Step(d.now, d.events), d.flight
	told := d.halting
	for i := range acts {
		if d.record != nil {
			io.WriteString(d.record, describe(d.s, &acts[i]))
		}
		if err := d.act(&acts[i], i == len(acts)-1); err != nil {
			return err
		}
	}
	if before != nil && !told && d.halting != d.dueHalt() {
		return fmt.Errorf("told to halt %+v: %v, due: %v", *before, d.halting, d.dueHalt())
	}
	d.events = d.events[:0]
	if d.flight == nil && len(d.live) > 0 && len(d.loading) == 0 {
		return fmt.Errorf("%d requests live and nothing runs", len(d.live))
	}
	if n := d.stats().RecomputedTokens; n != int64(d.recomputed) {
		return fmt.Errorf("%d positions were computed again, %d counted", d.recomputed, n)
	}
	if d.s.Live() != len(d.live) {
		return fmt.Errorf("scheduler knows %d requests, %d are live", d.s.Live(), len(d.live))
	}
	return cmp.Or(d.checkPlaces(), d.s.Check())
}

// dueHalt reports whether the forward in flight must halt for the pending events: a prefill without
// a live request, or one that yields to a request that arrived and was not rejected.
func (d *driver) dueHalt() bool {
	if d.flight.Kind == Decode {
		return false
	}
	due := d.wanted(d.flight) == 0
	for _, e := range d.events {
		c := d.live[e.ID]
		came := e.Kind == Arrive || e.Kind == Loaded || e.Kind == LoadFailed
		due = due || d.open && d.yields() && came && c != nil && c.class == Reactive && !d.loads(e.ID)
	}
	return due
}

func (d *driver) act(a *Action, last bool) error {
	switch a.Kind {
	case Load:
		return d.beginLoad(a)
	case Halt:
		if d.flight == nil || d.halting || a.ID != d.flight.ID || a.Lane != d.flight.Lane {
			return fmt.Errorf("%+v while %+v is in flight", *a, d.flight)
		}
		d.halting = true
		return nil
	case Reject:
		if d.live[a.ID] == nil {
			return fmt.Errorf("rejected %d, which is %q", a.ID, d.sinceEnd[a.ID])
		}
		delete(d.live, a.ID)
		d.sinceEnd[a.ID], d.retry = "rejected", a.RetryAfter
		return nil
	case Preempt:
		c := d.live[a.ID]
		if c == nil {
			return fmt.Errorf("preempted %d, which is %q", a.ID, d.sinceEnd[a.ID])
		}
		c.computed, c.draft = 0, nil
		c.preempted++
		d.lose(a.ID)
		return nil
	}
	if d.flight != nil || !last {
		return fmt.Errorf("a second forward %+v", *a)
	}
	f := *a
	f.Rows = slices.Clone(a.Rows)
	d.flight, d.open, d.halting = &f, d.s.flights[a.Lane].interruptible, false
	d.ends = d.now + d.cost(a)
	d.forwards++
	if a.Kind == Prefill && len(a.Rows) > 1 {
		d.packed++
	}
	for _, c := range d.live {
		c.forwards++
	}
	if err := d.checkClasses(a); err != nil {
		return err
	}
	if d.stopped != 0 && a.Set == d.halted.Set {
		return fmt.Errorf("%+v runs on the activations of the halted %d", *a, d.stopped)
	}
	return d.checkBatch(a)
}

// checkClasses checks the guarantees for reactive requests.
func (d *driver) checkClasses(a *Action) error {
	switch a.Kind {
	case Decode:
		reactive, proactive, rows := 0, 0, 0
		for _, r := range a.Rows {
			if d.live[r.ID].class == Reactive {
				reactive++
			} else {
				proactive++
			}
			rows += r.N
		}
		if rows > d.cfg.MaxRunning+1 || reactive > d.cfg.MaxRunning {
			return fmt.Errorf("batch of %d rows, %d reactive, most are %d", rows, reactive, d.cfg.MaxRunning)
		}
		// One aged sequence has a row beyond the cap, and the first sequence is always allowed.
		if d.sandwich() && d.cfg.TPOT == 0 && reactive > 0 && proactive > 1 && len(a.Rows) > d.cfg.MixedCap+1 {
			return fmt.Errorf("mixed batch of %d rows, cap %d", len(a.Rows), d.cfg.MixedCap)
		}
		if d.cfg.Policy == "share" && reactive > 0 && proactive > 0 {
			return fmt.Errorf("a batch of both classes")
		}
	case Prefill, Resume:
		if a.Kind == Resume != (d.stopped == a.ID) {
			return fmt.Errorf("%+v while %d is halted", *a, d.stopped)
		}
		if a.Kind == Resume {
			if a.Pos != d.halted.Pos || a.N != d.halted.N || a.Last != d.halted.Last || a.Set != d.halted.Set ||
				!slices.Equal(a.Rows, d.halted.Rows) {
				return fmt.Errorf("resumed %+v as %+v", d.halted, *a)
			}
			d.stopped = 0
		}
		if d.open && d.stopped != 0 {
			return fmt.Errorf("two proactive prefills are open: %d and %d", d.stopped, a.ID)
		}
	}
	return nil
}

// sandwich reports whether the scheduler runs the policy sandwich, which guarantees more than
// others.
func (d *driver) sandwich() bool { return d.cfg.Policy == "" || d.cfg.Policy == DefaultPolicy }

// yields reports whether a reactive arrival halts a proactive prefill.
func (d *driver) yields() bool { return d.sandwich() || d.cfg.Policy == "preempt" }

func (d *driver) stats() Stats { return d.s.Stats() }

// checkBatch checks that the batch has the right tokens and positions, reads the right text through
// its tables, and writes to blocks that no other request reads.
func (d *driver) checkBatch(a *Action) error {
	d.s.Fill(a.Lane, &d.batch)
	b := &d.batch
	of := a.rows()
	if b.Prefill != (a.Kind != Decode) || len(b.Spans) != len(of) || len(of) == 0 {
		return fmt.Errorf("batch %+v for %+v", *b, *a)
	}
	row, logits := 0, 0
	for i, span := range b.Spans {
		id, n := of[i].ID, of[i].N
		c := d.live[id]
		if c == nil {
			return fmt.Errorf("forward for %d, which is %q", id, d.sinceEnd[id])
		}
		text := c.text
		if len(c.draft) > 0 {
			text = slices.Concat(c.text, c.draft)
		}
		if c.computed == 0 && span.Pos > 0 {
			c.computed = span.Pos // prefix reuse, verified by content below
		}
		switch {
		case span.Row != row || span.Pos != c.computed:
			return fmt.Errorf("span %+v of %d, computed so far %d", span, id, c.computed)
		case a.Kind == Decode && (span.Rows != n || n > len(c.text)-span.Pos+len(c.draft) ||
			span.Pos != len(c.text)-1 && !d.states() || n < len(c.text)-span.Pos),
			a.Kind == Decode && span.Pos+n > c.prompt+c.want:
			return fmt.Errorf("decode of span %+v, %d tokens known", span, len(c.text))
		case a.Kind != Decode && i == 0 && (span.Rows != a.N || n > d.cfg.Chunk && !d.cfg.Whole || span.Pos != a.Pos ||
			a.Last != (a.Pos+a.N == len(c.text))),
			a.Kind != Decode && i > 0 && (span.Rows != n || span.Pos+n != len(c.text) || row+n > d.cfg.Chunk ||
				d.sandwich() && c.class != d.live[a.ID].class), d.cfg.Whole && span.Pos > 0, d.cfg.Texts &&
				a.Kind == Decode:
			return fmt.Errorf("prefill %+v of span %+v, %d tokens known", *a, span, len(c.text))
		case !slices.Equal(b.Tokens[row:row+span.Rows], text[span.Pos:span.Pos+span.Rows]):
			return fmt.Errorf("tokens of span %+v are not those of %d", span, id)
		}
		for pos := max(span.Pos, len(c.text)-1); pos < span.Pos+span.Rows; pos++ {
			if logits >= len(b.LogitRows) || b.LogitRows[logits] != int32(row+pos-span.Pos) {
				return fmt.Errorf("no logits for %d in %v", id, b.LogitRows)
			}
			logits++
		}
		if err := d.checkTable(span, text); err != nil {
			return fmt.Errorf("request %d: %w", id, err)
		}
		c.kept = d.keptIn(span)
		row += span.Rows
	}
	if row != len(b.Tokens) || logits != len(b.LogitRows) {
		return fmt.Errorf("batch has %d rows and %v logits, spans %d and %d", len(b.Tokens), b.LogitRows, row, logits)
	}
	return nil
}

func (d *driver) checkTable(span kvcache.Span, text []int32) error {
	for i, table := range span.Tables {
		if d.cfg.Stores[i].Kind == (kvcache.Recurrent{}) {
			if err := d.checkState(d.content[i], table, span, text); err != nil {
				return err
			}
			continue
		}
		for p := 0; p < span.Pos; p += kvcache.BlockTokens {
			b, end := p/kvcache.BlockTokens, min(p+kvcache.BlockTokens, span.Pos)
			if at := span.Pos / kvcache.BlockTokens; b < at && !d.cfg.Stores[i].Kind.Reads(at, b) {
				continue
			}
			if got := d.content[i][table[b]]; len(got) < end || !slices.Equal(got[:end], text[:end]) {
				return fmt.Errorf("block %d of positions %d..%d holds another text", table[b], p, end-1)
			}
		}
		for p := span.Pos; p < span.Pos+span.Rows; {
			end := min((p/kvcache.BlockTokens+1)*kvcache.BlockTokens, span.Pos+span.Rows)
			d.content[i][table[p/kvcache.BlockTokens]] = text[:end]
			p = end
		}
	}
	return nil
}

func (d *driver) drain(limit int) error {
	for n := 0; len(d.live) > 0 || d.flight != nil || len(d.loading) > 0; n++ {
		if n > limit {
			return fmt.Errorf("%d requests still live after %d forwards", len(d.live), limit)
		}
		if d.flight != nil {
			d.now = d.ends
			d.land()
		}
		d.endLoad()
		if err := d.step(); err != nil {
			return err
		}
	}
	if st := d.stats(); st.Free != st.Blocks || st.Waiting != [2]int{} || st.Running != [2]int{} {
		return fmt.Errorf("left at the end: %+v", st)
	}
	return nil
}
