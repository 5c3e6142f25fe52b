// Package bench has the verb bench and its subcommands, which measure kernels, ops and searches.
// The verbs llm, load and papers are packages of their own.
package bench

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/bench/cachebench"
	"sandwich/cmd/sandwich/internal/cli/bench/drafts"
	"sandwich/cmd/sandwich/internal/cli/bench/llm"
	"sandwich/cmd/sandwich/internal/cli/bench/load"
	"sandwich/cmd/sandwich/internal/cli/bench/papers"
	"sandwich/cmd/sandwich/internal/cli/flags"
)

// NewBench returns the verb bench.
func NewBench() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this program on this machine, each figure next to its ceiling",
		Example: `  sandwich bench llm --model llama.gguf
  sandwich bench gemm --shapes 4096x4096 --m 1,512 --type q8_0
  sandwich bench allreduce --ranks 2
  sandwich bench attention --model llama-3.1-8b --decode 4096
  sandwich bench cache --model llama.gguf --tokens 16000
  sandwich bench embed --model bert.gguf
  sandwich bench grammar --schema tools.json --model llama.gguf
  sandwich bench load --policy sandwich,fcfs --svg load.svg
  sandwich bench papers --model llama-160m.gguf --figures 10
  sandwich bench predict llama.gguf --anchors-of tinyllama.gguf
  sandwich bench roofline --model llama.gguf --svg roofline.svg
  sandwich bench perplexity text.txt --model llama.gguf
  sandwich bench speculate main.go --model llama.gguf`,
		Args: flags.KnownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchAllReduce(), newBenchAttention(), cachebench.New(), newBenchEmbed(), newBenchGEMM(),
		newBenchGrammar(), llm.New(), load.New(), papers.New(), newBenchPerplexity(), newBenchPredict(),
		newBenchRanking(), newBenchRoofline(), newBenchSearch(), drafts.New(), newBenchHeuristic(),
		renamed(newBenchHeuristic(), "thumb", "bench heuristic"))
	return c
}

// renamed returns a verb under its former name: hidden, with one line on stderr that states the new
// one.
func renamed(c *cobra.Command, former, now string) *cobra.Command {
	_, args, _ := strings.Cut(c.Use, " ")
	c.Use, c.Hidden = former+" "+args, true
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		fmt.Fprintf(c.ErrOrStderr(), "sandwich: %q is now called %q\n", c.CommandPath(), c.Root().Name()+" "+now)
		return run(c, args)
	}
	return c
}
