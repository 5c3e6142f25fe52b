package topotree

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/internal/message"
)

// maxSetText limits the text of one set. The kernel's longest list, every second of 8192 PUs, has
// 24 KiB.
const maxSetText = 1 << 17

// String returns the set as a Linux CPU list: "0-3,8". The empty set is "".
func (s CPUSet) String() string {
	var b strings.Builder
	from, to := -1, -1
	flush := func() {
		if from < 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(from))
		if to > from {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(to))
		}
	}
	for c := range s.All() {
		if c == to+1 && from >= 0 {
			to = c
			continue
		}
		flush()
		from, to = c, c
	}
	flush()
	return b.String()
}

// ParseCPUSet parses a Linux CPU list such as "0-3,8" or "0-31:2/8" (used:group stride). Blank text
// is the empty set.
func ParseCPUSet(text string) (CPUSet, error) {
	text = trimSpace(text)
	if text == "" {
		return CPUSet{}, nil
	}
	if len(text) > maxSetText {
		return CPUSet{}, fmt.Errorf("CPU list of %d bytes exceeds the limit of %d",
			len(text), maxSetText)
	}
	words := make([]uint64, MaxPUs/64)
	for part := range strings.SplitSeq(text, ",") {
		if err := setListPart(words, strings.TrimSpace(part)); err != nil {
			return CPUSet{}, fmt.Errorf("CPU list %q: %w", message.Clip(text, 60), err)
		}
	}
	return CPUSetFromWords(words).compact(), nil
}

func setListPart(words []uint64, part string) error {
	span, stride, strided := strings.Cut(part, ":")
	lo, hi, isRange := strings.Cut(span, "-")
	from, err := parsePU(lo)
	if err != nil {
		return err
	}
	to := from
	if isRange {
		if to, err = parsePU(hi); err != nil {
			return err
		}
	}
	if to < from {
		return fmt.Errorf("range %q is descending", message.Clip(part, 60))
	}
	used, group := 1, 1
	if strided {
		u, g, ok := strings.Cut(stride, "/")
		used, err = parsePU(u)
		if err == nil {
			group, err = parsePU(g)
		}
		if err != nil || !ok || used < 1 || group < used {
			return fmt.Errorf("stride %q does not have the form used/group", message.Clip(part, 60))
		}
	}
	for c := from; c <= to; c++ {
		if (c-from)%group < used {
			words[c/64] |= 1 << (c % 64)
		}
	}
	return nil
}

func parsePU(text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, fmt.Errorf("%q is not a CPU number", message.Clip(text, 60))
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a CPU number", message.Clip(text, 60))
	}
	if n >= MaxPUs {
		return 0, fmt.Errorf("CPU %d is beyond the limit of %d", n, MaxPUs)
	}
	return n, nil
}

// ParseCPUMask parses a bitmap in 32-bit hexadecimal words, the highest first: the kernel's
// "00ff,ffffffff" and hwloc's "0x00010000,,0x0", where an empty word is zero. It rejects hwloc's
// infinite "0xf...f".
func ParseCPUMask(text string) (CPUSet, error) {
	text = trimSpace(text)
	if text == "" {
		return CPUSet{}, nil
	}
	if len(text) > maxSetText {
		return CPUSet{}, fmt.Errorf("CPU mask of %d bytes exceeds the limit of %d",
			len(text), maxSetText)
	}
	parts := strings.Split(text, ",")
	words := make([]uint64, (len(parts)+1)/2)
	for i, part := range parts {
		part = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(part), "0x"), "0X")
		if part == "" {
			continue
		}
		v, err := strconv.ParseUint(part, 16, 64)
		if err != nil || (v > 1<<32-1 && len(parts) > 1) {
			return CPUSet{}, fmt.Errorf("CPU mask %q: %q is not a 32-bit hexadecimal word", message.Clip(text, 60),
				message.Clip(part, 60))
		}
		at := len(parts) - 1 - i
		words[at/2] |= v << (32 * (at % 2))
	}
	set := CPUSetFromWords(words)
	if set.Last() >= MaxPUs {
		return CPUSet{}, fmt.Errorf("CPU mask names CPU %d, beyond the limit of %d", set.Last(), MaxPUs)
	}
	return set.compact(), nil
}

// compact copies the words, so that a small set does not retain a large array.
func (s CPUSet) compact() CPUSet {
	if len(s.words) == 0 {
		return CPUSet{}
	}
	return CPUSet{append(make([]uint64, 0, len(s.words)), s.words...)}
}

// MarshalText returns the list form, for JSON and YAML.
func (s CPUSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the list form.
func (s *CPUSet) UnmarshalText(text []byte) error {
	set, err := ParseCPUSet(string(text))
	if err != nil {
		return err
	}
	*s = set
	return nil
}

// trimSpace removes the blanks, newlines and NUL bytes that files of the kernel have at their end.
func trimSpace(text string) string {
	return strings.Trim(text, " \t\r\n\x00")
}

// Brief returns the list form; a long one is replaced by its beginning and the number of PUs.
func (s CPUSet) Brief() string {
	const limit = 40
	text := s.String()
	if len(text) <= limit {
		return text
	}
	cut := strings.LastIndexByte(text[:limit-12], ',')
	if cut < 0 {
		return text
	}
	return fmt.Sprintf("%s,... (%d PUs)", text[:cut], s.Count())
}
