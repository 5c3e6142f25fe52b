package search

import (
	"fmt"
	"strings"
)

// strategy proposes and times schedules, one anchor after another. It returns errSpent from a trial
// unchanged.
type strategy interface {
	anchor(a *anchor) error
}

// Strategies by name: the paper's, and the rivals of its evaluation.
var strategies = []struct {
	name, about string
	perShape    bool
	make        func(r *run) strategy
}{
	{"sandwich", "fast start, then finetune, with a sliding window over M and schedule reuse (Sandwich section " +
		"6)", false, func(r *run) strategy { return &fastStartFinetune{} }},
	{"scale-up", "grow one micro-kernel greedily through the cache levels, then replicate it (Roller)", false,
		func(r *run) strategy { return &scaleUp{} }},
	{"cost-model", "a few fixed micro-kernels, measured once, laid out by a model of their cost (DietCode, " +
		"MikPoly)", false, func(r *run) strategy { return &costModel{} }},
	{"random", "legal schedules drawn at random", false, func(r *run) strategy { return &random{} }},
	{"exhaustive", "the 32 best micro-kernels times 64 slices times all polymerization schemes, each M by " +
		"itself", true, func(r *run) strategy { return &exhaustive{} }},
	{"static", "1000 trials on the whole weight for every M, as a compiler of static shapes must", true,
		func(r *run) strategy { return &static{} }},
}

// Strategies returns the names that Options.Strategy accepts, the default first.
func Strategies() []string {
	var names []string
	for _, s := range strategies {
		names = append(names, s.name)
	}
	return names
}

// About describes a strategy, or returns "" if it does not exist.
func About(name string) string {
	for _, s := range strategies {
		if s.name == name {
			return s.about
		}
	}
	return ""
}

// PerShape reports whether a strategy searches every M separately: its table holds only the
// requested M, and a table for every M takes as many searches.
func PerShape(name string) bool {
	for _, s := range strategies {
		if s.name == name {
			return s.perShape
		}
	}
	return false
}

func newStrategy(name string, r *run) (strategy, error) {
	if name == "" {
		name = strategies[0].name
	}
	for _, s := range strategies {
		if s.name == name {
			return s.make(r), nil
		}
	}
	return nil, fmt.Errorf("unknown search strategy %q; choose one of %s", name, strings.Join(Strategies(), ", "))
}
