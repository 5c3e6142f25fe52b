package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/microkernel/qtype"
)

// String returns the spec on one line, as plans store it: isa/compute/weight/MRxNR/kuKU/form and,
// if they apply, /dot and /pfBYTES or /spread.
func (s Spec) String() string {
	form := fmt.Sprintf("form(%d)", uint8(s.Form))
	if s.Form < Forms {
		form = formNames[s.Form]
	}
	t := fmt.Sprintf("%s/%s/%s/%dx%d/ku%d/%s", s.ISA, s.Compute, s.B, s.MR, s.NR, s.KU, form)
	if name := s.Dot.String(); name != "" {
		t += "/" + name
	}
	if s.Prefetch != 0 {
		t += "/pf" + strconv.Itoa(s.Prefetch)
	}
	if s.Spread {
		t += "/spread"
	}
	return t
}

// ParseSpec is the inverse of String: each spec has one spelling. It does not validate.
func ParseSpec(text string) (Spec, error) {
	s, err := parseSpec(strings.Split(text, "/"))
	if err == nil && s.String() != text {
		err = fmt.Errorf("write it as %s", s)
	}
	if err != nil {
		return Spec{}, fmt.Errorf("kernel spec %q: %w", text, err)
	}
	return s, nil
}

func parseSpec(f []string) (s Spec, err error) {
	if len(f) < 6 {
		return s, fmt.Errorf("want isa/compute/weight/MRxNR/kuKU/form")
	}
	if s.ISA, err = ParseISA(f[0]); err != nil {
		return s, err
	}
	if s.Compute, err = ParseCompute(f[1]); err != nil {
		return s, err
	}
	if s.B, err = qtype.Parse(f[2]); err != nil {
		return s, err
	}
	mr, nr, _ := strings.Cut(f[3], "x")
	if s.MR, err = strconv.Atoi(mr); err != nil {
		return s, fmt.Errorf("tile %q is not MRxNR", f[3])
	}
	if s.NR, err = strconv.Atoi(nr); err != nil {
		return s, fmt.Errorf("tile %q is not MRxNR", f[3])
	}
	if s.KU, err = number(f[4], "ku"); err != nil {
		return s, err
	}
	form := slices.Index(formNames[:], f[5])
	if form < 0 {
		return s, fmt.Errorf("unknown form %q (known: %s)", f[5], strings.Join(formNames[:], ", "))
	}
	s.Form = Form(form)
	for _, x := range f[6:] {
		if d := dotNamed(x); d != NoDot {
			s.Dot = d
		} else if x == "spread" {
			s.Spread = true
		} else if s.Prefetch, err = number(x, "pf"); err != nil {
			return s, err
		}
	}
	return s, nil
}

func number(s, prefix string) (int, error) {
	rest, ok := strings.CutPrefix(s, prefix)
	n, err := strconv.Atoi(rest)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not %s followed by a number", s, prefix)
	}
	return n, nil
}

// MarshalText encodes a spec as its String.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a spec and validates it.
func (s *Spec) UnmarshalText(b []byte) error {
	p, err := ParseSpec(string(b))
	if err == nil {
		err = p.Validate()
	}
	if err == nil {
		*s = p
	}
	return err
}
