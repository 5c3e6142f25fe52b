package gate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandwich/profiles"
)

// Waiver lets a row stay undecided on a runner where it is known to be noisy: up to a ceiling,
// until a day, for a reason. It never waives a proven regression.
type Waiver struct {
	Row     string
	Ceiling float64 // of the A/A spread
	Expires time.Time
	Reason  string
}

type waiverDoc struct {
	Row     string `yaml:"row"`
	Ceiling string `yaml:"ceiling"`
	Expires string `yaml:"expires"`
	Reason  string `yaml:"reason"`
}

const maxWaivers = 256

// earliest is before any plan of this format was made: a clock that says less is wrong, and under
// it no waiver would ever expire.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ParseWaivers reads a file of waivers. Every field is needed; now is the clock of this machine,
// which must be plausible.
func ParseWaivers(data []byte, now time.Time) ([]Waiver, error) {
	var doc struct {
		Version int         `yaml:"version"`
		Waivers []waiverDoc `yaml:"waivers"`
	}
	if err := profiles.DecodeYAML(data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != 1 || len(doc.Waivers) > maxWaivers {
		return nil, fmt.Errorf("version %d with %d waivers; give version 1 and at most %d", doc.Version,
			len(doc.Waivers), maxWaivers)
	}
	if len(doc.Waivers) > 0 && now.Before(earliest) {
		return nil, fmt.Errorf("waivers expire and the clock of this machine says %s: set it",
			now.UTC().Format(time.DateOnly))
	}
	var out []Waiver
	for i, d := range doc.Waivers {
		w := Waiver{Row: d.Row, Reason: strings.TrimSpace(d.Reason)}
		var err error
		if w.Ceiling, err = ParsePercent(d.Ceiling); err != nil {
			return nil, fmt.Errorf("waiver %d: ceiling: %w", i+1, err)
		}
		if w.Expires, err = time.Parse(time.DateOnly, d.Expires); err != nil {
			return nil, fmt.Errorf("waiver %d: expires is %.40q, no day as in 2026-12-31", i+1, d.Expires)
		}
		if w.Row == "" || w.Reason == "" {
			return nil, fmt.Errorf("waiver %d: row and reason must say something", i+1)
		}
		out = append(out, w)
	}
	return out, nil
}

// ParsePercent reads a share with its unit, such as 3% or 2.5 %, within 0 and 100.
func ParsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !ok || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("%.40q is no share from 0%% to 100%%, such as 3%%", text)
	}
	return v / 100, nil
}
