package plans

import (
	"fmt"
	"slices"

	"sandwich/topotree"
)

// PUSet is a list of OS indexes of PUs in ascending order, written as text: "0-3,8".
type PUSet []int

// String is the list notation of Linux cpusets.
func (s PUSet) String() string { return topotree.NewCPUSet(s...).String() }

// MarshalText writes the text form.
func (s PUSet) MarshalText() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads the text form. Numbers of topotree.MaxPUs and above are refused.
func (s *PUSet) UnmarshalText(text []byte) error {
	set, err := topotree.ParseCPUSet(string(text))
	if err != nil {
		return err
	}
	*s = set.Slice()
	return nil
}

// check refuses lists that are not in ascending order or name impossible PUs.
func (s PUSet) check() error {
	for i, pu := range s {
		if pu < 0 || pu >= topotree.MaxPUs {
			return fmt.Errorf("PU %d is not within 0..%d", pu, topotree.MaxPUs-1)
		}
		if i > 0 && pu <= s[i-1] {
			return fmt.Errorf("PU %d follows PU %d: PUs are listed once each in ascending order", pu, s[i-1])
		}
	}
	return nil
}

// missing returns the PUs of s that are not in host.
func (s PUSet) missing(host []int) PUSet {
	var out PUSet
	for _, pu := range s {
		if !slices.Contains(host, pu) {
			out = append(out, pu)
		}
	}
	return out
}

// Intersect is what two sets have in common.
func (s PUSet) Intersect(o PUSet) (out PUSet) {
	for _, pu := range s {
		if slices.Contains(o, pu) {
			out = append(out, pu)
		}
	}
	return out
}
