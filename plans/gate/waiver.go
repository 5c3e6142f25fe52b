package gate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandwich/profiles"
)

// Waiver permits a row to stay undecided on a noisy runner, up to a limit of noise and until a
// date. It does not waive a significant regression.
type Waiver struct {
	Row     string
	Ceiling float64 // limit of the spread of equal arms
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

// earliest is a date before any plan of this format. An earlier clock is wrong, and with it no
// waiver would expire.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ParseWaivers parses a file of waivers. All fields are required. now is the current time, which
// must be plausible.
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
		return nil, fmt.Errorf("the clock of this machine says %s, so waivers cannot expire: set the clock",
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
			return nil, fmt.Errorf("waiver %d: expires is %.40q, not a date such as 2026-12-31", i+1, d.Expires)
		}
		if w.Row == "" || w.Reason == "" {
			return nil, fmt.Errorf("waiver %d: row or reason is empty", i+1)
		}
		out = append(out, w)
	}
	return out, nil
}

// ParsePercent parses a percentage from 0 to 100, such as 3% or 2.5 %, and returns a fraction.
func ParsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !ok || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("%.40q is not a percentage from 0%% to 100%%, such as 3%%", text)
	}
	return v / 100, nil
}
