package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/internal/message"
	"sandwich/profiles"
)

// KeyChange is one property of the host that differs between the plan and this machine.
type KeyChange struct {
	Key       string `json:"key"`       // cpu_model, isa, pus, kernel, memory bandwidth of 2 PUs
	Made      string `json:"made"`      // value on the plan's host
	Here      string `json:"here"`      // value on this host
	Direction string `json:"direction"` // more, less, other
}

// Values of KeyChange.Direction: this host has more, less, or something else than the plan's
// host.
const (
	keyMore  = "more"
	keyLess  = "less"
	keyOther = "other"
)

// KeyChanges returns the differences between the plan's host and another one: first those that
// invalidate a plan, then those that tuning depends on, then settings, then ceilings that both
// profiles measured.
func KeyChanges(made, here *profiles.Profile) (out []KeyChange) {
	add := func(key, was, is, direction string) {
		if was != is {
			out = append(out, KeyChange{key, message.Clip(was, 60), message.Clip(is, 60), direction})
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
		out = append(out, KeyChange{"isa", message.OrNone(message.Clip(strings.Join(lost, " "), 60)),
			message.OrNone(message.Clip(strings.Join(gained,
				" "), 60)),
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
	for _, d := range made.Devices {
		if h := here.Device(d.ID); h != nil {
			add("device "+d.ID, d.Name+", driver "+d.Driver, h.Name+", driver "+h.Driver, keyOther)
		}
	}
	for _, c := range ceilingPairs(made, here) {
		add(c.name(), fmt.Sprintf("%.4g %s", c.made.Median, c.made.Unit), fmt.Sprintf("%.4g %s (%+.0f %%)",
			c.here.Median,
			c.here.Unit, 100*c.change()), direction(c.made.Median, c.here.Median))
	}
	return out
}

// direction compares two numbers.
func direction(was, is float64) string {
	switch {
	case is > was:
		return keyMore
	case is < was:
		return keyLess
	}
	return keyOther
}

// quota returns the number of PUs that the CPU quota allows, or all allowed PUs without a quota.
func quota(p *profiles.Profile) int {
	if q := p.QuotaPUs(); q > 0 {
		return q
	}
	return p.Allowed().Count()
}

// quotaText describes a CPU quota in PUs; 0 means none.
func quotaText(pus int) string {
	if pus == 0 {
		return "none"
	}
	return strconv.Itoa(pus) + " PUs"
}

// absent returns the elements of a that b lacks.
func absent(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}
