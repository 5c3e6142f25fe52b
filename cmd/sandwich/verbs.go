package main

import (
	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/bench"
	"sandwich/cmd/sandwich/internal/cli/bench/llm"
	"sandwich/cmd/sandwich/internal/cli/cache"
	"sandwich/cmd/sandwich/internal/cli/completion"
	"sandwich/cmd/sandwich/internal/cli/config"
	"sandwich/cmd/sandwich/internal/cli/fleet"
	"sandwich/cmd/sandwich/internal/cli/healthcheck"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/manual"
	"sandwich/cmd/sandwich/internal/cli/model"
	"sandwich/cmd/sandwich/internal/cli/plan"
	"sandwich/cmd/sandwich/internal/cli/pull"
	"sandwich/cmd/sandwich/internal/cli/serve"
	"sandwich/cmd/sandwich/internal/cli/tune"
)

// verbs returns the top-level commands.
func verbs() []*cobra.Command {
	list := []*cobra.Command{
		machine.NewProbe(),
		bench.NewBench(),
		cache.NewCache(),
		config.NewConfig(),
		machine.NewDoctor(),
		healthcheck.NewHealth(),
		manual.NewMan(),
		serve.NewEmbed(),
		fleet.NewFleet(),
		serve.NewGenerate(),
		serve.NewRun(),
		serve.NewServe(),
		machine.NewTree(),
		tune.NewTune(),
		model.NewModel(),
		llm.NewNeighbor(),
		plan.NewPlan(),
		pull.NewPull(),
	}
	for _, c := range list {
		completion.Register(c)
	}
	return list
}
