package gate

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// Subject is what invariants are checked on: a plan with its host, and the memory that serving
// needs.
type Subject struct {
	Bundle *bundle.Bundle
	Memory int64 // bytes
}

// invariant is one kind of sentence. holds receives the groups of the pattern; its error says how
// the plan violates the invariant.
type invariant struct {
	example string
	pattern func() *regexp.Regexp
	holds   func(s *Subject, arg []string) error
}

// invariants lists all kinds of sentences.
var invariants = []invariant{
	{"decode uses no SMT sibling", sentence(`^(prefill|decode) uses no SMT sibling$`), noSibling},
	{"decode uses at most 8 PUs", sentence(`^(prefill|decode) uses at most ([0-9]{1,5}) PUs?$`), atMost},
	{"prefill uses only the PUs 0-7", sentence(`^(prefill|decode) uses only the PUs ([0-9,-]{1,200})$`),
		within},
	{"peak memory below 12 GiB", sentence(`^peak memory below ([0-9]{1,7}(?:\.[0-9]{1,3})?) (MiB|GiB|TiB)$`),
		memory},
	{"at most 2 ranks", sentence(`^at most ([0-9]{1,4}) ranks?$`), ranks},
	{"the plan is exact", sentence(`^the plan is exact$`), func(s *Subject, _ []string) error {
		if why := s.Bundle.Plan.Rounding(); why != "" {
			return errors.New(why)
		}
		return nil
	}},
	{"the plan is tuned", sentence(`^the plan is tuned$`), func(s *Subject, _ []string) error {
		if !s.Bundle.Plan.Tuned {
			return errors.New("it is the default plan")
		}
		return nil
	}},
	{"the KV cache is f16", sentence(`^the KV cache is (f16|f32|q8_0)$`), func(s *Subject, a []string) error {
		if got := s.Bundle.Plan.KV.String(); got != a[1] {
			return errors.New("it is " + got)
		}
		return nil
	}},
}

// sentence returns a pattern that is compiled on first use.
func sentence(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// Invariant is a condition that a plan must satisfy, written as a sentence.
type Invariant struct {
	Text string
	arg  []string
	rule *invariant
}

const maxInvariants = 256

// ParseInvariants parses a file with a list of invariants. The error for an unknown sentence lists
// the known forms.
func ParseInvariants(data []byte) ([]Invariant, error) {
	var doc struct {
		Version    int      `yaml:"version"`
		Invariants []string `yaml:"invariants"`
	}
	if err := profiles.DecodeYAML(data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != 1 || len(doc.Invariants) > maxInvariants {
		return nil, fmt.Errorf("version %d with %d invariants; give version 1 and at most %d", doc.Version,
			len(doc.Invariants), maxInvariants)
	}
	var out []Invariant
	for _, text := range doc.Invariants {
		v, err := parseInvariant(strings.Join(strings.Fields(text), " "))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// parseInvariant parses one sentence.
func parseInvariant(text string) (Invariant, error) {
	var known []string
	for i := range invariants {
		if arg := invariants[i].pattern().FindStringSubmatch(text); arg != nil {
			return Invariant{text, arg, &invariants[i]}, nil
		}
		known = append(known, strconv.Quote(invariants[i].example))
	}
	return Invariant{}, fmt.Errorf("unknown invariant %.80q; use one of %s", text,
		strings.Join(known, ", "))
}

// Check checks the invariant on a plan.
func (v Invariant) Check(s *Subject) Check {
	c := Check{Name: v.Text, OK: true}
	if err := v.rule.holds(s, v.arg); err != nil {
		c.OK, c.Text = false, err.Error()
	}
	return c
}

func phasePUs(s *Subject, name string) topotree.CPUSet {
	if name == phase.Prefill.String() {
		return s.Bundle.Plan.Prefill.PUs
	}
	return s.Bundle.Plan.Decode.PUs
}

func noSibling(s *Subject, arg []string) error {
	pus := phasePUs(s, arg[1])
	for _, o := range s.Bundle.Host.Machine.Objects {
		if o.Kind != topotree.KindCore {
			continue
		}
		if both := o.CPUs.Intersect(pus); both.Count() > 1 {
			return fmt.Errorf("the PUs %s belong to one core", both)
		}
	}
	return nil
}

func atMost(s *Subject, arg []string) error {
	limit, err := strconv.Atoi(arg[2])
	if n := phasePUs(s, arg[1]).Count(); err == nil && n > limit {
		err = fmt.Errorf("it uses %d", n)
	}
	return err
}

func within(s *Subject, arg []string) error {
	allowed, err := topotree.ParseCPUSet(arg[2])
	if err != nil {
		return err
	}
	if pus := phasePUs(s, arg[1]); !pus.In(allowed) {
		return fmt.Errorf("it uses the PUs %s", pus)
	}
	return nil
}

func memory(s *Subject, arg []string) error {
	limit, err := strconv.ParseFloat(arg[1], 64)
	if err != nil {
		return err
	}
	unit := map[string]float64{"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[arg[2]]
	if float64(s.Memory) >= limit*unit {
		return fmt.Errorf("serving needs %.2f %s", float64(s.Memory)/unit, arg[2])
	}
	return nil
}

func ranks(s *Subject, arg []string) error {
	limit, err := strconv.Atoi(arg[1])
	if n := s.Bundle.Plan.TP(); err == nil && n > limit {
		err = fmt.Errorf("it has %d", n)
	}
	return err
}
