package plans

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"sandwich/profiles"
)

// PUSet is a sorted list of OS indexes of PUs, written as text: "0-3,8".
type PUSet []int

// String is the list notation of Linux cpusets.
func (s PUSet) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(s[j]))
		}
		i = j + 1
	}
	return b.String()
}

// ParsePUSet reads the notation of String. Indexes above profiles.MaxPU, ranges that fall, and PUs named twice or out of order are refused.
func ParsePUSet(text string) (PUSet, error) {
	if text == "" {
		return nil, nil
	}
	var set PUSet
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := parsePU(lo)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = parsePU(hi); err != nil {
				return nil, err
			}
		}
		if last < first || len(set) > 0 && first <= set[len(set)-1] {
			return nil, fmt.Errorf("PU list %.40q is not ascending", text)
		}
		for pu := first; pu <= last; pu++ {
			set = append(set, pu)
		}
	}
	return set, nil
}

func parsePU(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > profiles.MaxPU {
		return 0, fmt.Errorf("PU %.20q is no number in 0..%d", s, profiles.MaxPU)
	}
	return n, nil
}

// MarshalYAML writes the text form.
func (s PUSet) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: s.String()}, nil
}

// UnmarshalYAML reads the text form.
func (s *PUSet) UnmarshalYAML(n *yaml.Node) error {
	set, err := ParsePUSet(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*s = set
	return nil
}

// sorted tells whether the set is in ascending order without repetition.
func (s PUSet) sorted() bool {
	return slices.IsSorted(s) && len(slices.Compact(slices.Clone(s))) == len(s)
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
