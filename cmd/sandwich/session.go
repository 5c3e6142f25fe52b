package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/mem"
	"sandwich/runtime/session"
)

// sessionFlags holds the flags shared by the verbs that run a model: the model, the plan and
// overrides.
type sessionFlags struct {
	model, plan      string
	isa, kv, compute string
	attention        string
	threads, ranks   int
	spin             time.Duration
	firstPUs         bool // an untuned plan takes the first PUs, even if other processes use them
	loading          session.Stages
	wants            purpose
}

// add adds the flags of the model and the plan.
func (f *sessionFlags) add(c *cobra.Command) {
	f.addPlan(c)
	c.Flags().IntVarP(&f.threads, "threads", "t", 0, "worker threads, one per PU (default: as in the plan)")
}

// addPlan adds the flags of the model and the plan except --threads.
func (f *sessionFlags) addPlan(c *cobra.Command) {
	f.addModel(c)
	c.Flags().StringVar(&f.plan, "plan", "", "plan bundle (default: the newest one for this host and model in "+
		dataFolderText+", else the default plan)")
}

// addModel adds the flags of the model except --plan and --threads.
func (f *sessionFlags) addModel(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.model, "model", "m", "", "GGUF file (default: the embedded model)")
	fs.IntVar(&f.ranks, "tp", 0, "tensor-parallel ranks, each with separate PUs and memory (default: as in the "+
		"plan, else 1)")
	fs.StringVar(&f.isa, "isa", "", "instruction set of the kernels: avx512, avx2, neon or go (default: the "+
		"widest); 1=avx2 sets that of worker 1")
	fs.StringVar(&f.kv, "kv", "", "type of the KV cache: f16, f32 or q8_0 (default: as in the plan, else f16)")
	fs.StringVar(&f.compute, "compute", "auto", "arithmetic by weight: auto (the fastest by the measured rates of "+
		"this CPU), f32 (exact), int8 (quantized weights), int8-256 (weights in blocks of 256, with a scale per 256 "+
		"activations), bf16 (bf16 weights, on a CPU with bfloat16 dot products)")
	fs.StringVar(&f.attention, "attention", "auto", "dot product of attention: auto (the fastest by the measured "+
		"rates "+
		"of this CPU, unless weights are computed in f32), f32 (exact), dpbf16 (bfloat16, avx512_bf16), tdpbf16 "+
		"(bfloat16, amx), or dpbusd (integers, avx512_vnni, --kv q8_0)")
	durationFlag(fs, &f.spin, "spin", 50*time.Microsecond,
		"how long a waiting worker spins before it sleeps; 0 sleeps at once")
}

// open reads the model and the profile of this machine and chooses the plan, whose name it prints
// to stderr. The caller closes the session.
func (f *sessionFlags) open() (*session.Session, error) {
	s, err := f.load()
	if err != nil {
		return nil, err
	}
	if err := f.choose(s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// choose sets the plan of the session according to the flags.
func (f *sessionFlags) choose(s *session.Session) error {
	f.loading.At("choosing the plan", 0)
	c, err := f.choosePlan(s.Profile, s.Shape)
	if err != nil {
		return err
	}
	s.Use(c, f.asked().Replan(s.Profile, s.Shape, c.Plan))
	return nil
}

// load reads the model and the profile of this machine, without choosing a plan.
func (f *sessionFlags) load() (*session.Session, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if err := mem.CheckLimit(leastMemory); err != nil {
		return nil, usageError(err)
	}
	s, err := session.Open(f.model, session.Hears{Spin: f.spin, Stages: f.loading, Notice: show.Notice,
		Bar: show.ByteBar})
	if err != nil {
		return nil, usageError(err)
	}
	if err := f.wants.suits(s); err != nil {
		s.Close()
		return nil, usageError(err)
	}
	f.loading.At("probing the machine", 0)
	if s.Profile, err = liveProfile(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// check rejects values out of range.
func (f *sessionFlags) check() error {
	switch {
	case f.threads < 0:
		return usageError(fmt.Errorf("--threads %d is negative; give a number of at least 1", f.threads))
	case f.ranks < 0:
		return usageError(fmt.Errorf("--tp %d is negative; give a number of at least 1", f.ranks))
	case f.spin < 0 || f.spin > time.Second:
		return usageError(fmt.Errorf("--spin %s is out of range; give a duration from 0 to 1s", f.spin))
	case !slices.Contains([]string{"", "auto", "f32", "int8", "int8-256", "bf16"}, f.compute):
		return usageError(fmt.Errorf("--compute %s is unknown; give auto, f32, int8, int8-256 or bf16",
			show.Clip(f.compute, 20)))
	case f.attention != "" && f.attention != "auto":
		if _, err := microkernel.ParseAttentionDot(f.attention); err != nil {
			return usageError(fmt.Errorf("--attention: %w", err))
		}
	}
	return nil
}

// modelError gives errors of loading their exit code: a model or plan that this program cannot run
// is an input.
func modelError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, mem.ErrNoNode) {
		return withCode(exitForeign, &session.LoadError{Err: err})
	}
	if code := plans.ExitCode(err); code != exitFailed {
		return withCode(code, err)
	}
	return usageError(err)
}
