package modelset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/models/catalog"
	"sandwich/cmd/sandwich/internal/models/filehash"
	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/runtime/answer"
	"sandwich/runtime/background"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/modelcache"
	"sandwich/runtime/pool/poolset"
	"sandwich/runtime/pool/thread"
	"sandwich/runtime/sched"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/status"
	"sandwich/runtime/session"
	"sandwich/runtime/speculate"
	"sandwich/topotree"
)

// Defaults of entries.
const (
	maxEmbedContext = 8192 // of an embedding or rerank model, in tokens
	embedParallel   = 64   // texts that such a model reads at once
)

// Memory of an engine in addition to its forecast.
const (
	workerBytes = 2 << 20 // scratch memory of a worker, and of a rank
	roundBytes  = 8 << 20 // of a rank: its buffers are rounded up to huge pages
)

// scratch returns the memory of a rank of the plan that its workers use to compute ops.
func (o *opened) scratch(rank int) int64 {
	return workerBytes * int64(1+o.Plan.Ranks[rank].PUs.Count())
}

// source opens one model of the catalog. It implements modelcache.Source.
type source struct {
	set   *Set
	entry catalog.Model
	// version is that of the last load, or the one that was inspected.
	version atomic.Pointer[version]
	plan    atomic.Pointer[status.Plan] // of version; nil: not described
}

// version is a version of the file of a model.
type version struct {
	file string // fileID
	hash string // see package filehash
}

// opened is a session with the sizes of its engine. It implements modelcache.Opened.
type opened struct {
	*session.Session
	source *source
	hash   string // of the file
	sizes  session.Sizes
	need   modelcache.Memory
	// progress receives the stages of the load; nil before.
	progress atomic.Pointer[func(share float64)]
}

// Open implements modelcache.Source. It runs next to forwards of other models.
func (s *source) Open(ctx context.Context) (modelcache.Opened, error) {
	file := fileID(ctx, s.entry.Model) // before it is read: a change in between is seen at the next load
	var o *opened
	var err error
	thread.Low(func() { o, err = s.open(ctx, s.set.o.Notice, s.set.budget.Load()) })
	if err != nil {
		return nil, err
	}
	now := version{file, o.hash}
	s.noteReplaced(*s.version.Swap(&now), now)
	return o, nil
}

// open reads the model, chooses its plan and the sizes of its engine within a budget.
func (s *source) open(ctx context.Context, notice func(string), budget *modelcache.Budget) (*opened, error) {
	path, err := modelref.Local(ctx, s.entry.Model)
	if err != nil {
		return nil, s.wrap(err)
	}
	if _, err := os.Stat(path); path != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, s.wrap(exit.Usage(fmt.Errorf("the file %s does not exist, and no pulled model has this name; "+
			"give a path that is relative to %s, a name of `sandwich model ls`, or \"\" for the embedded model", path,
			filepath.Dir(s.set.o.Path))))
	}
	o := &opened{source: s}
	f := s.set.o.Session.Of(path, s.entry.Plan, s.entry.Device)
	f.Notice = func(text string) { notice(s.entry.Name + ": " + text) }
	f.Loading = func(_ string, share float64) {
		if to := o.progress.Load(); to != nil {
			(*to)(share)
		}
	}
	if o.Session, err = f.Open(); err != nil {
		return nil, s.wrap(err)
	}
	o.Name = s.entry.Name
	if err = o.prepare(budget); err != nil {
		o.Session.Close()
		return nil, s.wrap(err)
	}
	if describe := s.set.o.Describe; describe != nil {
		s.plan.Store(describe(o.Session, o.sizes.Parallel))
	}
	return o, nil
}

// prepare checks the session and completes o.
func (o *opened) prepare(budget *modelcache.Budget) (err error) {
	if err = o.source.set.o.Accept(o.Session); err != nil {
		return err
	}
	if err = o.CheckTokenizer(); err != nil {
		return exit.Usage(err)
	}
	if o.hash, err = filehash.Of(o.File); err != nil {
		return err
	}
	return o.size(budget)
}

// wrap adds the name of the model to an error, and keeps its exit code.
func (s *source) wrap(err error) error { return fmt.Errorf("model %s: %w", s.entry.Name, err) }

// noteReplaced reports that the file of the model is another one than before. Prefixes on disk are
// stored under a hash of the whole model, so that those of the old file are not used.
func (s *source) noteReplaced(old, now version) {
	switch {
	case old.file == now.file:
	case old.hash == now.hash:
		s.set.o.Notice(fmt.Sprintf("%s: the file was written again; its hash is the same, %s", s.entry.Name,
			now.hash))
	default:
		s.set.o.Notice(fmt.Sprintf("%s: the file was replaced, its hash is now %s and was %s; the new one is read, "+
			"and stored prefixes of the old one are not used", s.entry.Name, now.hash, old.hash))
	}
}

// fileID identifies a version of the file of a model, or of a pulled one.
func fileID(ctx context.Context, name string) string {
	path, err := modelref.Local(ctx, name)
	if err != nil || path == "" {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime().Format(time.RFC3339Nano))
}

// size chooses the sizes of the engine: as many KV blocks as the budget admits, at most the context
// of every parallel request, in at most half of the budget, and at least one context.
func (o *opened) size(budget *modelcache.Budget) error {
	e, v := &o.source.entry, o.source.set.o.Sizes
	if e.Parallel > 0 {
		v.Parallel = e.Parallel
	}
	requests := v.Parallel
	pooled := o.Pooling != model.NoPooling
	if pooled {
		v.Parallel = max(v.Parallel, embedParallel)
	}
	switch {
	case e.Context > 0:
		v.Context = e.Context
	case v.Context == 0 && pooled:
		v.Context = o.ContextLimit(maxEmbedContext)
	case v.Context == 0:
		v.Context = o.ContextLimit(footprint.DefaultContext)
	}
	if d := v.Speculation.Drafter; d != nil { // an engine needs one for its vocabulary
		v.Speculation.Drafter, _, _ = speculate.New(d.Name())
	}
	for n := requests; ; n-- {
		v.Blocks = kvcache.BlocksFor(v.Context+1) * n
		rows, err := footprint.Sized(o.Plan, v, false)
		if err != nil {
			return exit.Usage(err)
		}
		need, kv := modelcache.Memory{}, int64(0)
		for _, r := range rows {
			node := mem.AnyNode
			if r.Node != nil {
				node = *r.Node
			}
			need[node] += r.Total + roundBytes + o.scratch(r.Rank)
			kv += r.KV
		}
		err = budget.Check(need)
		if err == nil && (n == 1 || budget.Total == 0 || kv <= budget.Total/2) {
			o.sizes, o.need = v, need
			return nil
		}
		if n == 1 {
			return exit.Usage(fmt.Errorf("weights, activations and the KV cache of one request of %d tokens: %w; "+
				"raise memory, or lower context", v.Context, err))
		}
	}
}

// Need implements modelcache.Opened.
func (o *opened) Need() modelcache.Memory { return o.need }

// info describes the model to clients.
func (o *opened) info() (generation.ModelInfo, error) {
	ops, err := arch.ModelOf(o.File)
	if err != nil {
		return generation.ModelInfo{}, o.source.wrap(err)
	}
	m := answer.Describe(o.Describe(), o.Tok, ops)
	m.Context, m.Parallel = o.sizes.Context, o.sizes.Parallel
	return m, nil
}

// Load implements modelcache.Opened.
func (o *opened) Load(ctx context.Context, progress func(share float64)) (modelcache.Instance, error) {
	set := o.source.set
	o.progress.Store(&progress)
	v := o.sizes
	turns := set.cores.NewBackground()
	v.Cores, v.Turns, v.Pools = set.cores.NewClient(), turns, &set.pools
	v.Note = func(text string) { set.o.Notice(o.Name + ": " + text) }
	v.Prefixes = set.o.Prefixes(o.Plan.Rounding())
	if replan := o.Replan; replan != nil {
		o.Replan = func(c *plans.ServiceConfig) (plan *plans.Plan, err error) {
			thread.Low(func() { plan, err = replan(c) })
			return plan, err
		}
	}
	e, err := o.Engine(ctx, v)
	if err != nil {
		closeSession(o.Session, turns)
		return nil, o.source.wrap(err)
	}
	i := &instance{engine: e, session: o.Session, turns: turns}
	thread.Low(func() { i.Generator = o.Generator(e, v.Parallel) })
	i.used = o.used(e)
	m := e.Runner().Memory()
	set.o.Notice(fmt.Sprintf("%s: loaded; weights %s, KV cache %s, activations %s%s", o.Name,
		mem.FormatBytes(m.Weights), mem.FormatBytes(m.KV), mem.FormatBytes(m.Activations), deviceOf(e.Stats().Lanes)))
	if set.o.Detail != nil {
		set.o.Detail(poolsOf(set.pools.List()))
	}
	return i, nil
}

// deviceOf says which phases a device runs; "" without one.
func deviceOf(lanes []engine.LaneState) (text string) {
	for _, l := range lanes {
		var phases []string
		for _, p := range l.Phases {
			phases = append(phases, p.String())
		}
		if !l.Cores {
			text += fmt.Sprintf("; %s runs %s", l.Name, strings.Join(phases, " and "))
		}
	}
	return text
}

// poolsOf says which pools of worker threads there are.
func poolsOf(list []poolset.Pool) string {
	var each []string
	for _, p := range list {
		each = append(each, fmt.Sprintf("PUs %s for %s", topotree.NewCPUSet(p.PUs...),
			message.Plural(p.Users, "model")))
	}
	return fmt.Sprintf("%s of worker threads: %s", message.Plural(len(list), "pool"), strings.Join(each, "; "))
}

// closeSession closes a session whose engine is closed. It returns the memory of the file in
// pieces.
func closeSession(s *session.Session, turns background.Turns) {
	s.File.Release(background.In(turns))
	s.Close()
}

// instance is a loaded model. It implements modelcache.Instance.
type instance struct {
	*answer.Generator
	engine  *engine.Engine
	session *session.Session
	turns   background.Turns // with the other models
	used    modelcache.Memory
}

// used returns the memory of an engine of the session.
func (o *opened) used(e *engine.Engine) modelcache.Memory {
	places, err := e.Placement()
	if err != nil { // the system cannot tell where memory is
		return o.need
	}
	used := modelcache.Memory{}
	for _, p := range places {
		switch p.What {
		case "activations": // Placement lists one of the sets
			used[p.Node] += sched.Sets * p.Bytes
		case "weights":
			used[p.Node] += p.Bytes + o.scratch(p.Rank)
		default:
			used[p.Node] += p.Bytes
		}
	}
	return used
}

// Used implements modelcache.Instance.
func (i *instance) Used() modelcache.Memory { return i.used }

// Close implements modelcache.Instance.
func (i *instance) Close() {
	i.engine.Close()
	closeSession(i.session, i.turns)
}
