package plans

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/profiles"
)

// KeyChange is one thing by which a plan knows its host and in which this host differs.
type KeyChange struct {
	Key       string `json:"key"`       // cpu_model, isa, pus, kernel, memory bandwidth of 2 PUs
	Made      string `json:"made"`      // on the host that the plan was made on
	Here      string `json:"here"`      // now
	Direction string `json:"direction"` // more, less, other
}

// The directions of a KeyChange, as seen from the plan.
const (
	keyMore  = "more"
	keyLess  = "less"
	keyOther = "other"
)

// KeyChanges lists what differs between the host of a plan and another one: what makes a plan void
// first, then what it was tuned with, then settings, then ceilings that both profiles measured.
func KeyChanges(made, here *profiles.Profile) (out []KeyChange) {
	add := func(key, was, is, direction string) {
		if was != is {
			out = append(out, KeyChange{key, clip(was), clip(is), direction})
		}
	}
	add("arch", made.Host.Arch, here.Host.Arch, keyOther)
	add("cpu_model", made.Host.CPUModel, here.Host.CPUModel, keyOther)
	lost, gained := absent(made.Host.ISA, here.Host.ISA), absent(here.Host.ISA, made.Host.ISA)
	if len(lost)+len(gained) > 0 {
		direction := keyOther
		switch {
		case len(gained) == 0:
			direction = keyLess
		case len(lost) == 0:
			direction = keyMore
		}
		out = append(out, KeyChange{"isa", orNone(clip(strings.Join(lost, " "))), orNone(clip(strings.Join(gained,
			" "))),
			direction})
	}
	a, b := made.Machine.Tree, here.Machine.Tree
	if a.Digest() != b.Digest() {
		was, is := fmt.Sprintf("%d PUs", a.PUs()), fmt.Sprintf("%d PUs", b.PUs())
		if was == is {
			was, is = was+", tree "+a.Digest().String()[:8], is+", tree "+b.Digest().String()[:8]
		}
		add("topology", was, is, direction(float64(a.PUs()), float64(b.PUs())))
	}
	x, y := made.Allowed(), here.Allowed()
	add("pus", x.String(), y.String(), direction(float64(x.Count()), float64(y.Count())))
	add("quota", quotaText(made.QuotaPUs()), quotaText(here.QuotaPUs()), direction(float64(quota(made)),
		float64(quota(here))))
	for _, s := range settings(made.Host, here.Host) {
		add(s.key, s.was, s.is, keyOther)
	}
	for _, c := range ceilingPairs(made, here) {
		add(c.name(), fmt.Sprintf("%.4g %s", c.made.Median, c.made.Unit), fmt.Sprintf("%.4g %s (%+.0f %%)",
			c.here.Median,
			c.here.Unit, 100*c.change()), direction(c.made.Median, c.here.Median))
	}
	return out
}

func direction(was, is float64) string {
	switch {
	case is > was:
		return keyMore
	case is < was:
		return keyLess
	}
	return keyOther
}

// quota is the PUs that are paid for; without one, all.
func quota(p *profiles.Profile) int {
	if q := p.QuotaPUs(); q > 0 {
		return q
	}
	return p.Allowed().Count()
}

func quotaText(pus int) string {
	if pus == 0 {
		return "none"
	}
	return strconv.Itoa(pus) + " PUs"
}

// absent lists what a has and b lacks.
func absent(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}
