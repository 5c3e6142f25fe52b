package main

import "github.com/spf13/cobra"

func newBench() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this program on this machine, each figure beside its roof",
		Example: `  sandwich bench llm --model llama.gguf
  sandwich bench gemm --shapes 4096x4096 --m 1,512 --type q8_0
  sandwich bench allreduce --ranks 2
  sandwich bench attention --model llama-3.1-8b --decode 4096
  sandwich bench embed --model bert.gguf
  sandwich bench grammar --schema tools.json --model llama.gguf
  sandwich bench load --policy sandwich,fcfs --svg load.svg
  sandwich bench predict llama.gguf --anchors-of tinyllama.gguf
  sandwich bench roofline --model llama.gguf --svg roofline.svg
  sandwich bench perplexity text.txt --model llama.gguf`,
		Args: knownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchAllReduce(), newBenchAttention(), newBenchEmbed(), newBenchGEMM(), newBenchGrammar(),
		newBenchLLM(), newBenchLoad(), newBenchPerplexity(), newBenchPredict(), newBenchRanking(),
		newBenchRoofline(), newBenchSearch(), newBenchThumb())
	return c
}
