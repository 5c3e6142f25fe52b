package main

import "github.com/spf13/cobra"

// verbs returns the top-level commands.
func verbs() []*cobra.Command {
	return []*cobra.Command{
		newProbe(),
		newBench(),
		newDoctor(),
		newEmbed(),
		newGenerate(),
		newRun(),
		newServe(),
		newTree(),
		newTune(),
		newModel(),
		newNeighbor(),
		newPlan(),
		newVersion(),
	}
}
