package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/bundle"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/counters"
	"sandwich/runtime/model"
	"sandwich/runtime/session"
	"sandwich/tuner/measure"
)

// llmFlags holds the flags of bench llm.
type llmFlags struct {
	session modelflags.Flags
	prompt  []int
	gen     []int
	depth   []int // positions before either
	batch   int
	reps    int
	threads []int
	sync    []string
	compare bool
	ceiling bool
	swap    bool
	ops     bool // measure single ops
	explain bool // say where ops run and measure nothing

	counters        bool
	source          counters.Source
	clients         int
	schema          string // that the clients' answers are held to
	neighbor        string
	neighborProcess *measure.NeighborProcess // runs while there is a neighbor
	stranger        measure.Neighbor
}

const llmLong = `Measure tokens per second as llama-bench does: pp512 is a prompt of 512 tokens from an empty cache, tg64 is 64 tokens
generated one by one, and tg64 @ d4096 the same after 4096 positions (--depth), which are not computed: how long attention
takes does not depend on what it reads. Where a tuned plan is found, the untuned one runs interleaved with it (--compare=false leaves it out).

The ceiling is the time that all products and attention would take, one after the other: each the longer of its arithmetic at
the peak of its own arithmetic (attention's is the plan's, and grows with the context) and of its weights, or of its keys
and values, at the bandwidth of memory. Of experts only those count that the rows are expected to reach. A
model that fits the caches may exceed the ceiling of memory, which is then said in the place of a share.

--counters adds the figures of Sandwich (DAC '26), section 2.1, from perf events of the worker threads, and for each figure that this machine does
not have the reason.

--neighbor PU:50% starts a process that takes half of one PU's time and measures each test without and with it, interleaved.
The fair share is what the time that is left would give, 75 % of the undisturbed figure where that process takes half of
one of two PUs; the goal is 90 % of the fair share of prompts and 80 % of that of generation at the median. It also tells
how often a worker that had lost its PU was left out, how many chunks of ops a worker at risk computed into memory of its
own ("apart"), and how many another one computed again; without that process nothing is, which --format json shows.

--ops times every op of the prompts instead. The ceiling of a product is that of the ports (see bench gemm); "ports by
themselves": shares of the time in which its instructions of one class alone would keep their ports busy.

--explain says for every op of the tests where it runs and why, by the ceilings of this machine, and measures none.
--switch measures the hot switch instead: decode on a part of the PUs (one of each rank, unless the plan says which), prefill
on all, whose other workers were parked for 100 ms; --reps times each way. It also tells how many bytes of weights, KV cache
and activations were at another address or node afterwards.`

func New() *cobra.Command {
	var f llmFlags
	c := &cobra.Command{
		Use:   "llm",
		Short: "Measure prompt processing and generation in tokens per second",
		Long:  llmLong,
		Example: `  sandwich bench llm
  sandwich bench llm --model llama.gguf -p 512,128 -n 64 --threads 1,2 --reps 5 --format json
  sandwich bench llm --model llama.gguf --batch 8
  sandwich bench llm --model llama.gguf -p 512 -n 32 --depth 0,4096,32768 --kv q8_0
  sandwich bench llm --model llama.gguf --threads 2 --neighbor 1:50%
  sandwich bench llm --model llama.gguf --clients 32 -n 64
  sandwich bench llm --model llama.gguf --clients 8 --schema answer.json -n 128
  sandwich bench llm --model llama.gguf --threads 2 --switch --reps 50`,
		Args: flags.ExactArgs(0, ""),
	}
	f.session.AddPlan(c)
	fs := c.Flags()
	fs.IntSliceVarP(&f.threads, "threads", "t", nil, "worker threads, such as 1,2 (default: as the plan says)")
	fs.IntSliceVarP(&f.prompt, "pp", "p", []int{512}, "lengths of prompts; 0 leaves them out")
	fs.IntSliceVarP(&f.gen, "tg", "n", []int{64}, "numbers of generated tokens; 0 leaves them out")
	fs.IntSliceVarP(&f.depth, "depth", "d", []int{0}, "positions of the KV cache that lie before each test; "+
		"they are not computed")
	fs.IntVar(&f.batch, "batch", 1, "sequences that generate at the same time")
	fs.IntVarP(&f.reps, "reps", "r", 5, "samples of each test")
	fs.StringSliceVar(&f.sync, "sync", []string{"b"}, "how tensor-parallel ranks wait: b, for their own "+
		"workers, or a, for all after each op; a,b compares")
	fs.BoolVar(&f.compare, "compare", true, "with a tuned plan, or one of several ranks, also measure the untuned "+
		"one of one rank, interleaved")
	machine.CeilingFlag(fs, &f.ceiling)
	fs.BoolVar(&f.counters, "counters", false, "count what the processor does: instructions per cycle, cache, "+
		"TLB, remote and memory accesses of each test")
	f.source = counters.System{}
	fs.IntVar(&f.clients, "clients", 0, "measure -n with this many streaming clients of the HTTP server, "+
		"interleaved with as many requests in this process")
	fs.StringVar(&f.schema, "schema", "", "file with a JSON Schema: measure -n with --clients answers under it, "+
		"interleaved with as many plain ones, in this process")
	fs.StringVar(&f.neighbor, "neighbor", "", "measure next to a process that takes a share of one PU, such as 1:50%")
	flags.Renamed(fs, "neighbour", "neighbor")
	fs.BoolVar(&f.swap, "switch", false, "measure the hot switch between prefill on all PUs and decode on some")
	fs.BoolVar(&f.ops, "ops", false, "measure what each op of the prompts takes, and of a delta rule its rate")
	fs.BoolVar(&f.explain, "explain", false, "say for each op of the tests its regime, where it runs, and why")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return exit.Usage(err)
		}
		if report := f.instead(*format); report != nil {
			return report(c)
		}
		rows, err := f.run(c.Context())
		if err != nil {
			return err
		}
		return printLLM(c.OutOrStdout(), rows, *format)
	}
	return c
}

// instead returns the measurement that a flag selects in place of tokens per second; nil if none
// does.
func (f *llmFlags) instead(format string) func(c *cobra.Command) error {
	switch {
	case f.explain:
		return func(c *cobra.Command) error { return bundle.PlacedReport.After(c, format)(f.runExplain(c.Context())) }
	case f.swap:
		return func(c *cobra.Command) error { return SwitchReport.After(c, format)(f.runSwitch(c.Context())) }
	case f.ops:
		return func(c *cobra.Command) error { return opsReport.After(c, format)(f.runOps(c.Context())) }
	case f.schema != "":
		return func(c *cobra.Command) error { return schemaReport.After(c, format)(f.runSchema(c.Context())) }
	case f.clients > 0:
		return func(c *cobra.Command) error { return ClientsReport.After(c, format)(f.runClients(c.Context())) }
	}
	return nil
}

func (f *llmFlags) check() error {
	for _, list := range []struct {
		name   string
		values []int
	}{{"-p", f.prompt}, {"-n", f.gen}, {"--depth", f.depth}} {
		for _, v := range list.values {
			if v < 0 || v > 1<<20 {
				return fmt.Errorf("%s %d: give a number of tokens from 0 to %d", list.name, v, 1<<20)
			}
		}
	}
	for _, t := range f.threads {
		if t < 1 {
			return fmt.Errorf("--threads %d: give numbers of at least 1", t)
		}
	}
	for _, s := range f.sync {
		if _, ok := syncs[s]; !ok {
			return fmt.Errorf("--sync %s: give a, b or both", show.Clip(s, 20))
		}
	}
	switch {
	case f.batch < 1 || f.batch > modelflags.MaxParallel:
		return fmt.Errorf("--batch %d: give a number from 1 to %d", f.batch, modelflags.MaxParallel)
	case f.clients < 0 || f.clients > modelflags.MaxParallel:
		return fmt.Errorf("--clients %d: give a number from 1 to %d", f.clients, modelflags.MaxParallel)
	case slices.Max(append(f.depth, 0)) > 0 && (f.ops || f.swap || f.clients > 0):
		return errors.New("--depth goes without --ops, --switch and --clients")
	case f.schema != "" && f.clients == 0:
		return errors.New("--schema goes with --clients: say how many answers are generated at once, such as 8")
	case f.clients > 0 && (f.counters || f.neighbor != "" || f.batch > 1 || len(f.threads) > 1):
		return errors.New("--clients goes without --batch, --counters and --neighbor, and with one number of " +
			"--threads")
	case f.swap && (f.counters || f.neighbor != "" || f.clients > 0 || f.batch > 1 || len(f.threads) > 1):
		return errors.New("--switch goes without --batch, --counters, --clients and --neighbor, and with one " +
			"number of --threads")
	case f.ops && (f.swap || f.counters || f.neighbor != "" || f.clients > 0 || f.batch > 1 || len(f.threads) > 1 ||
		slices.Max(append(f.prompt, 0)) == 0):
		return errors.New("--ops wants -p, goes without --switch, --batch, --counters, --clients and " +
			"--neighbor, and with one number of --threads")
	case f.explain && (f.ops || f.swap || f.counters || f.neighbor != "" || f.clients > 0 || len(f.threads) > 1):
		return errors.New("--explain goes without --ops, --switch, --counters, --clients and --neighbor, and with " +
			"one number of --threads")
	case f.reps < 1 || f.reps > 10000:
		return fmt.Errorf("--reps %d: give a number from 1 to 10000", f.reps)
	}
	if f.neighbor != "" {
		f.session.FirstPUs = true // the neighbor is on a PU that was named
		var err error
		f.stranger, err = parseNeighbor(f.neighbor)
		return err
	}
	return nil
}

func (f *llmFlags) tests() []measure.Test { return measure.Tests(f.prompt, f.gen, f.depth, f.batch) }

func (f *llmFlags) run(ctx context.Context) ([]measure.LLMRow, error) {
	s, err := f.session.Load()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if f.ceiling {
		if err := machine.MeasureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	if f.neighbor != "" {
		if f.neighborProcess, err = startNeighbor(ctx, f.stranger); err != nil {
			return nil, err
		}
		defer f.neighborProcess.Stop()
	}
	threads := f.threads
	if len(threads) == 0 {
		threads = []int{0}
	}
	var rows []measure.LLMRow
	for _, n := range threads {
		f.session.Threads = n
		more, err := f.runThreads(ctx, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// runThreads measures every test with the plans for one number of threads.
func (f *llmFlags) runThreads(ctx context.Context, s *session.Session) ([]measure.LLMRow, error) {
	arms, err := f.openArms(ctx, s)
	defer func() {
		for _, a := range arms {
			a.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	ops, err := model.Of(s.File) // which says more than the shape: windows of layers
	if err != nil {
		return nil, err
	}
	tests := f.tests()
	step, done := show.StepBar("bench llm", len(tests)*len(arms)*(f.reps+1))
	defer done()
	return measure.LLM(ctx, measure.LLMOptions{Arms: arms, Tests: tests, Reps: f.reps, Model: s.Name, Ops: ops,
		Vocab: s.Shape.Vocab, Host: s.Profile, Neighbor: f.neighborProcess, Step: step})
}
