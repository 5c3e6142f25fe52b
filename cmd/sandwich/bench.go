package main

import "github.com/spf13/cobra"

func newBench() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this program on this machine, each figure beside its roof",
		Args:  knownVerb,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchGEMM(), newBenchLLM(), newBenchPerplexity(), newBenchSearch())
	return c
}
