// Package completion completes the values of flags and the names of pulled models in shells.
package completion

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/plans/export"
	"sandwich/profiles"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/sched"
	"sandwich/runtime/speculate"
	"sandwich/tuner/replay"
	"sandwich/tuner/search"
)

// values has the values of the flags that take a fixed set of them in all commands. Shells complete
// other flags by names of files.
var values = map[string]func() []string{
	"attention":     words("auto", "f32", "dpbf16", "tdpbf16", "dpbusd"),
	"compute":       words("auto", "f32", "int8", "int8-256", "int8-k", "bf16", "bf16-tile"),
	"device":        words("auto", "none", "cuda:0", "vulkan:0"),
	"device-ops":    words("auto", "all", "dense"),
	"device-phases": words("auto", "prefill", "decode", "both"),
	"effort":        words("quick", "standard", "full"),
	"graph":         words("text", "svg"),
	"isa":           words("avx512", "avx2", "neon", "go"),
	"kv":            words("f16", "f32", "q8_0"),
	"log":           words("text", "json", "off"),
	"machine":       profiles.BuiltinNames,
	"measure":       words("none", "quick", "full"),
	"objective":     replay.Objectives,
	"policy":        sched.Policies,
	"preset":        synth.PresetNames,
	"speculate":     func() []string { return speculate.Modes },
	"strategy":      search.Strategies,
	"strict":        words("good", "optimal"),
	"to":            export.Targets,
}

func words(list ...string) func() []string { return func() []string { return list } }

// open lists the flags of values that take names of files or other texts, too.
var open = map[string]bool{"machine": true}

// chooser is a value of a flag that lists its choices.
type chooser interface{ Choices() []string }

// Register adds completions to the flags and arguments of a command and of those below it.
func Register(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { register(c, f) })
	if c.HasParent() && c.Parent().Name() == "model" && (c.Name() == "rm" || c.Name() == "show") {
		c.ValidArgsFunction = models
	}
	for _, sub := range c.Commands() {
		Register(sub)
	}
}

func register(c *cobra.Command, f *pflag.Flag) {
	var complete cobra.CompletionFunc
	kind := f.Value.Type()
	list := values[f.Name]
	if v, ok := f.Value.(chooser); ok {
		list = v.Choices
	}
	switch {
	case kind == "bool":
		return
	case list != nil && open[f.Name]:
		complete = fixed(list, cobra.ShellCompDirectiveDefault)
	case list != nil:
		complete = fixed(list, cobra.ShellCompDirectiveNoFileComp)
	case f.Name == "model":
		complete = models
	case kind == "int" || kind == "duration" || kind == "size":
		complete = cobra.NoFileCompletions
	default:
		return
	}
	if err := c.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
		return // the command completes the flag itself
	}
}

// fixed completes by a list in its order.
func fixed(list func() []string, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return list(), directive | cobra.ShellCompDirectiveKeepOrder
	}
}

// models completes by the names of pulled models, with their references as descriptions, and by
// names of files.
func models(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	s, err := modelref.OpenStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	list, _, err := s.List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []cobra.Completion
	for _, m := range list {
		names = append(names, cobra.CompletionWithDesc(m.Name, m.Reference))
	}
	return names, cobra.ShellCompDirectiveDefault
}
