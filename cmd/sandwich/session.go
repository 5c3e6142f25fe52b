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
	firstPUs         bool // an untuned plan takes the first PUs, whatever else uses them
	loading          session.Stages
	wants            purpose
}

func (f *sessionFlags) add(c *cobra.Command) {
	f.addPlan(c)
	c.Flags().IntVarP(&f.threads, "threads", "t", 0, "worker threads, one a PU (default: as the plan says)")
}

// addPlan adds all of them but --threads.
func (f *sessionFlags) addPlan(c *cobra.Command) {
	f.addModel(c)
	c.Flags().StringVar(&f.plan, "plan", "", "plan bundle (default: the newest one for this host and model in "+
		dataFolderText+", else an untuned plan)")
}

// addModel adds all of them but --plan and --threads.
func (f *sessionFlags) addModel(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.model, "model", "m", "", "GGUF file (default: the embedded model)")
	fs.IntVar(&f.ranks, "tp", 0, "tensor-parallel ranks, each with PUs and memory of its own (default: as the "+
		"plan says, 1 without one)")
	fs.StringVar(&f.isa, "isa", "", "instruction set of the kernels: avx512, avx2, neon or go (default: the "+
		"widest); 1=avx2 for one worker")
	fs.StringVar(&f.kv, "kv", "", "type of the KV cache: f16, f32 or q8_0 (default: as the plan says, f16 without one)")
	fs.StringVar(&f.compute, "compute", "auto", "arithmetic of weights: auto (the faster by the rates of this "+
		"CPU), f32 (exact), int8 (quantized ones), int8-256 (those in blocks of 256, whose activations share a scale "+
		"as long), int8-k (the same ones, with exact integer sums), bf16 or bf16-tile (those of bf16, on a CPU with its "+
		"dot products or tile products)")
	fs.StringVar(&f.attention, "attention", "auto", "what attention adds up by: auto (the faster by the rates of "+
		"this CPU, where weights are not multiplied in f32), f32 (exact), the dot products of bfloat16 dpbf16 "+
		"(avx512_bf16) and tdpbf16 (amx), or that of integers dpbusd (avx512_vnni, --kv q8_0)")
	durationFlag(fs, &f.spin, "spin", 50*time.Microsecond,
		"how long a waiting worker spins before it sleeps; 0 sleeps at once")
}

// open reads the model, this machine and the plan, and prints the name of the plan to stderr.
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

// choose gives the session the plan that the flags ask for.
func (f *sessionFlags) choose(s *session.Session) error {
	f.loading.At("choosing the plan", 0)
	c, err := f.choosePlan(s.Profile, s.Shape)
	if err != nil {
		return err
	}
	s.Use(c, f.asked().Replan(s.Profile, s.Shape, c.Plan))
	return nil
}

// load reads the model and this machine.
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

func (f *sessionFlags) check() error {
	switch {
	case f.threads < 0:
		return usageError(fmt.Errorf("--threads %d: give a number of at least 1", f.threads))
	case f.ranks < 0:
		return usageError(fmt.Errorf("--tp %d: give a number of at least 1", f.ranks))
	case f.spin < 0 || f.spin > time.Second:
		return usageError(fmt.Errorf("--spin %s: give a duration from 0 to 1s", f.spin))
	case !slices.Contains([]string{"", "auto", "f32", "int8", "int8-256", "int8-k", "bf16", "bf16-tile"}, f.compute):
		return usageError(fmt.Errorf("--compute %s: give auto, f32, int8, int8-256, int8-k, bf16 or bf16-tile",
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
