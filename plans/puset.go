package plans

import (
	"fmt"

	"sandwich/topotree"
)

// PUSet is a list of OS indexes of PUs in ascending order. Its text form is that of Linux cpusets:
// "0-3,8".
type PUSet []int

// String returns the text form.
func (s PUSet) String() string { return topotree.NewCPUSet(s...).String() }

// MarshalText returns the text form. It fails if the list is not in ascending order.
func (s PUSet) MarshalText() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return []byte(s.String()), nil
}

// UnmarshalText parses the text form. It fails on indexes of topotree.MaxPUs and above.
func (s *PUSet) UnmarshalText(text []byte) error {
	set, err := topotree.ParseCPUSet(string(text))
	if err != nil {
		return err
	}
	*s = set.Slice()
	return nil
}

// check fails if the list is not in ascending order or has an invalid index.
func (s PUSet) check() error {
	for i, pu := range s {
		if pu < 0 || pu >= topotree.MaxPUs {
			return fmt.Errorf("PU %d is not within 0..%d", pu, topotree.MaxPUs-1)
		}
		if i > 0 && pu <= s[i-1] {
			return fmt.Errorf("PU %d follows PU %d: list PUs in ascending order without duplicates", pu, s[i-1])
		}
	}
	return nil
}

// missing returns the PUs of s that are not in host.
func (s PUSet) missing(host []int) PUSet {
	present := topotree.NewCPUSet(host...)
	return s.without(func(pu int) bool { return present.Contains(pu) })
}

// Intersect returns the elements of s that are in o, in the order of s.
func (s PUSet) Intersect(o PUSet) PUSet {
	present := topotree.NewCPUSet(o...)
	return s.without(func(pu int) bool { return !present.Contains(pu) })
}

// without returns the elements of s for which drop is false.
func (s PUSet) without(drop func(pu int) bool) (out PUSet) {
	for _, pu := range s {
		if !drop(pu) {
			out = append(out, pu)
		}
	}
	return out
}
