package main

import "github.com/spf13/cobra"

// verbs lists the commands, one file each.
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
