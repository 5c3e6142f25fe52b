// Package llm has the verbs of bench llm, which measure prompts and generation of a model.
package llm

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/bench/drafts"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/runtime/counters"
)

const speedText = `Measure tokens per second, as llama-bench does. pp512 is a prompt of 512 tokens from an empty cache, tg64 the generation of
64 tokens one by one, and tg64 @ d4096 the same after 4096 positions (--depth). These positions are not computed, since
the time of attention does not depend on their values. If a tuned plan is found, the default plan runs interleaved with
it; --compare=false measures the plan alone.

The ceiling assumes that all products and attention run one after the other. Each takes the longer of two times: its
arithmetic at the peak of its data type, and its weights, or keys and values, at the memory bandwidth. For mixtures of
experts only the experts that the rows are expected to reach count. A model that fits the caches may exceed the memory
ceiling; the output then says so instead of a share.

The energy per token is that of the processor packages, their memory (RAPL) and the device (NVML or hwmon) during the
samples, idle parts included. If a counter is not readable, the reason is printed instead.

--counters adds hardware counters of the worker threads (Sandwich, DAC '26, section 2.1), with the reason for each
counter that this machine lacks.

--neighbor PU:50% starts a process that takes half of the time of one PU, and measures each test without and with it,
interleaved. The fair share is the throughput that the remaining CPU time allows: 75 % if the process takes half of one of
two PUs. The goal is a median of 90 % of the fair share for prompts and 80 % for generation. The output also counts how
often a worker that had lost its PU was skipped, the chunks that workers at risk computed into private buffers, and the
chunks that other workers computed again. Without the process all three are 0; --format json has both.

--speculate p=P drafts the tokens of a plain run and replaces each by a wrong one with probability 1-P. It prints the
times of decode steps by their number of rows, the speed without and with drafts, interleaved, and its bound: the largest
ratio of speeds that drafts of one fixed length would have with these times.`

// New returns the verb bench llm with its subcommands.
func New() *cobra.Command {
	var f llmFlags
	c := &cobra.Command{
		Use:   "llm",
		Short: "Measure prompt processing and generation in tokens per second",
		Long:  speedText,
		Example: `  sandwich bench llm
  sandwich bench llm --model llama.gguf -p 512,128 -n 64 --threads 1,2 --reps 5 --format json
  sandwich bench llm --model llama.gguf --batch 8
  sandwich bench llm --model llama.gguf -p 512 -n 32 --depth 0,4096,32768 --kv q8_0
  sandwich bench llm --model llama.gguf --threads 2 --neighbor 1:50%
  sandwich bench llm --model llama.gguf -n 128 --speculate p=0.8
  sandwich bench llm ops --model llama.gguf
  sandwich bench llm server --model llama.gguf --clients 32 -n 64
  sandwich bench llm switch --model llama.gguf --threads 2`,
		Args: flags.ExactArgs(0, ""),
	}
	f.add(c)
	format := flags.Format(c, "table", "json", "csv")
	c.AddCommand(newOps(), newSwitch(), newServer(), newSchema(), newExplain())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		if f.speculate != "" {
			return drafts.Report.After(c, *format)(f.runDrafts(c.Context()))
		}
		rows, err := f.run(c.Context())
		if err != nil {
			return err
		}
		return printLLM(c.OutOrStdout(), rows, *format)
	}
	return c
}

// add adds the flags of bench llm without a subcommand.
func (f *llmFlags) add(c *cobra.Command) {
	f.session.AddPlan(c)
	f.session.AddDevice(c)
	modelflags.AddVerbose(c)
	fs := c.Flags()
	fs.IntSliceVarP(&f.threads, "threads", "t", nil, "worker threads, such as 1,2 (default: as in the plan)")
	f.testFlags.add(fs)
	fs.IntVarP(&f.reps, "reps", "r", 5, "samples per test")
	fs.StringSliceVar(&f.sync, "sync", []string{"b"}, "barrier scope of tensor-parallel ranks: b, the workers of a "+
		"rank, or a, all workers after each op; a,b compares both")
	fs.BoolVar(&f.compare, "compare", true, "with a tuned plan, or one of several ranks, also measure the default "+
		"plan of one rank, interleaved")
	machine.CeilingFlag(fs, &f.ceiling)
	fs.BoolVar(&f.counters, "counters", false, "read hardware counters in each test: instructions per cycle, cache, "+
		"TLB, remote and memory accesses")
	f.source = counters.System{}
	fs.StringVar(&f.neighbor, "neighbor", "", "measure next to a process that takes a share of one PU, such as 1:50%")
	flags.Renamed(fs, "neighbour", "neighbor")
	fs.StringVar(&f.speculate, "speculate", "", "instead measure generation with and without drafts whose tokens are "+
		"right with a probability, such as p=0.8")
}

// add adds the flags of the tests.
func (f *testFlags) add(fs *pflag.FlagSet) {
	fs.IntSliceVarP(&f.prompt, "pp", "p", []int{512}, "prompt lengths; 0 measures none")
	fs.IntSliceVarP(&f.gen, "tg", "n", []int{64}, "numbers of generated tokens; 0 measures none")
	fs.IntSliceVarP(&f.depth, "depth", "d", []int{0}, "positions in the KV cache before each test, not computed")
	fs.IntVar(&f.batch, "batch", 1, "sequences that generate concurrently")
}
