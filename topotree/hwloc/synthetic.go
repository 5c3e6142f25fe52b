package hwloc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/internal/message"
	"sandwich/topotree"
)

const (
	maxSyntheticText   = 1 << 18
	maxSyntheticLevels = 32
)

// synthLevel is one level of a synthetic string.
type synthLevel struct {
	kind    topotree.Kind
	skip    bool // an L1 cache or the machine, which are no tree levels
	arity   int
	bytes   int64
	indexes []int
}

// ReadSynthetic parses an hwloc synthetic string: levels from the package down as "type:count",
// where count is per parent, with optional attributes: "pack:2 numa:2(memory=64GiB)
// l3:4(size=16MiB) core:4 pu:2(indexes=0,8,1,9)". A node in brackets, "[numa]", is attached to the
// preceding level. The string must end with PUs; a last level "core:4" implies one PU per core.
func ReadSynthetic(text string) (*topotree.Machine, error) {
	levels, err := parseSynthetic(text)
	if err != nil {
		return nil, fmt.Errorf("synthetic machine %q: %w", message.Clip(text, 60), err)
	}
	m := &topotree.Machine{Source: "synthetic"}
	if err := expand(m, levels); err != nil {
		return nil, fmt.Errorf("synthetic machine %q: %w", message.Clip(text, 60), err)
	}
	if m, err = topotree.Build(m); err != nil {
		return nil, fmt.Errorf("synthetic machine %q: %w", message.Clip(text, 60), err)
	}
	return m, nil
}

func parseSynthetic(text string) ([]synthLevel, error) {
	if len(text) > maxSyntheticText {
		return nil, fmt.Errorf("longer than %d bytes", maxSyntheticText)
	}
	words, err := synthWords(text)
	if err != nil {
		return nil, err
	}
	var levels []synthLevel
	total := 1
	for _, w := range words {
		level, err := parseSynthLevel(w)
		if err != nil {
			return nil, err
		}
		if len(levels) > 0 && levels[len(levels)-1].kind == topotree.KindPU {
			return nil, fmt.Errorf("level %q follows pu, which must be the last level", message.Clip(w, 60))
		}
		if level.arity > topotree.MaxPUs || total*level.arity > topotree.MaxPUs {
			return nil, fmt.Errorf("more than %d PUs by %q", topotree.MaxPUs, message.Clip(w, 60))
		}
		total *= level.arity
		if levels = append(levels, level); len(levels) > maxSyntheticLevels {
			return nil, fmt.Errorf("more than %d levels", maxSyntheticLevels)
		}
	}
	if len(levels) == 0 {
		return nil, fmt.Errorf("there is no level; use for example pack:1 l3:1 core:4 pu:2")
	}
	if levels[len(levels)-1].kind != topotree.KindPU {
		levels = append(levels, synthLevel{kind: topotree.KindPU, arity: 1})
	}
	seen := map[topotree.Kind]bool{}
	for _, l := range levels {
		if !l.skip && l.kind != topotree.KindGroup && seen[l.kind] {
			return nil, fmt.Errorf("level %s occurs twice", l.kind)
		}
		seen[l.kind] = seen[l.kind] || !l.skip
	}
	return levels, nil
}

// synthWords splits at blanks outside parentheses.
func synthWords(text string) ([]string, error) {
	var words []string
	depth, start := 0, 0
	flush := func(end int) {
		if w := strings.TrimSpace(text[start:end]); w != "" {
			words = append(words, w)
		}
		start = end
	}
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0 && strings.ContainsRune(" \t\r\n", r):
			flush(i)
		}
		if depth < 0 || depth > 1 {
			return nil, fmt.Errorf("parentheses do not match")
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("parentheses do not match")
	}
	flush(len(text))
	return words, nil
}

func parseSynthLevel(word string) (synthLevel, error) {
	level := synthLevel{arity: 1}
	head := word
	if inner, ok := strings.CutPrefix(word, "["); ok { // memory attached to the preceding level
		if head, ok = strings.CutSuffix(inner, "]"); !ok {
			return level, fmt.Errorf("%q has no closing bracket", message.Clip(word, 60))
		}
	}
	head, rest, hasAttrs := strings.Cut(head, "(")
	if hasAttrs {
		body, tail, _ := strings.Cut(rest, ")")
		head += tail // "l3(size=1MiB):2" is the same as "l3:2(size=1MiB)"
		if err := level.attributes(body); err != nil {
			return level, err
		}
	}
	name, count, counted := strings.Cut(head, ":")
	if counted {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return level, fmt.Errorf("%q: the count must be a number of at least 1", message.Clip(word, 60))
		}
		level.arity = n
	}
	var ok bool
	if level.kind, level.skip, ok = synthKind(name); !ok {
		return level, fmt.Errorf("%q is not a level: use pack, die, numa, l4, l3, group, cluster, l2, l1, core "+
			"or pu", message.Clip(name, 60))
	}
	return level, nil
}

func synthKind(name string) (kind topotree.Kind, skip, ok bool) {
	switch strings.ToLower(name) {
	case "machine", "l1", "l1d", "l1i", "l1cache", "l1dcache", "l1icache", "l1u", "l2i", "l3i", "l5", "l5cache":
		return topotree.KindMachine, true, true
	case "pack", "package", "socket", "sock":
		return topotree.KindPackage, false, true
	case "die":
		return topotree.KindDie, false, true
	case "numa", "node", "numanode":
		return topotree.KindNUMA, false, true
	case "l4", "l4u", "l4cache":
		return topotree.KindL4, false, true
	case "l3", "l3u", "l3d", "l3cache":
		return topotree.KindL3, false, true
	case "group":
		return topotree.KindGroup, false, true
	case "cluster":
		return topotree.KindCluster, false, true
	case "l2", "l2u", "l2d", "l2cache":
		return topotree.KindL2, false, true
	case "core":
		return topotree.KindCore, false, true
	case "pu":
		return topotree.KindPU, false, true
	}
	return 0, false, false
}

// attributes parses "size=32KiB indexes=0,2,1,3" and ignores other attributes.
func (l *synthLevel) attributes(body string) error {
	for field := range strings.FieldsSeq(body) {
		name, value, _ := strings.Cut(field, "=")
		switch strings.ToLower(name) {
		case "size", "memory":
			n, err := synthBytes(value)
			if err != nil {
				return err
			}
			l.bytes = n
		case "indexes":
			for part := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(part)
				if err != nil || n < 0 || n >= topotree.MaxPUs {
					return fmt.Errorf("indexes must be a list of numbers from 0 to %d, not %q", topotree.MaxPUs-1,
						message.Clip(part, 60))
				}
				if l.indexes = append(l.indexes, n); len(l.indexes) > topotree.MaxPUs {
					return fmt.Errorf("more than %d indexes", topotree.MaxPUs)
				}
			}
		}
	}
	return nil
}

// synthBytes parses a size with an optional unit. Units are powers of 1024.
func synthBytes(text string) (int64, error) {
	digits := strings.TrimRight(text, "kKmMgGtTiIbB")
	shift := 0
	switch strings.ToLower(strings.TrimRight(text[len(digits):], "iIbB")) {
	case "":
	case "k":
		shift = 10
	case "m":
		shift = 20
	case "g":
		shift = 30
	case "t":
		shift = 40
	default:
		return 0, fmt.Errorf("%q is not a size", message.Clip(text, 60))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > 1<<(62-shift) {
		return 0, fmt.Errorf("%q is not a size", message.Clip(text, 60))
	}
	return n << shift, nil
}

// expand makes the objects of the levels.
func expand(m *topotree.Machine, levels []synthLevel) error {
	total := 1
	for _, l := range levels {
		total *= l.arity
	}
	numbers, err := levels[len(levels)-1].numbers(total)
	if err != nil {
		return err
	}
	m.Online = topotree.NewCPUSet(numbers...)
	m.Allowed = m.Online
	count := 1
	for _, l := range levels[:len(levels)-1] {
		count *= l.arity
		if l.skip {
			continue
		}
		ids, err := l.numbers(count)
		if err != nil {
			return err
		}
		share := total / count
		for i := range count {
			set := topotree.NewCPUSet(numbers[i*share : (i+1)*share]...)
			if l.kind == topotree.KindNUMA {
				m.Memory = append(m.Memory, topotree.MemoryNode{ID: ids[i], CPUs: set, Bytes: l.bytes})
			} else {
				m.Objects = append(m.Objects, topotree.Object{Kind: l.kind, ID: ids[i], CPUs: set, Bytes: l.bytes})
			}
		}
	}
	if len(m.Memory) == 0 {
		m.Memory = []topotree.MemoryNode{{ID: 0, CPUs: m.Online}}
	}
	m.Objects = innermostGroups(m.Objects)
	return nil
}

// numbers returns the OS indexes of count objects of a level: as given, else in order.
func (l synthLevel) numbers(count int) ([]int, error) {
	if l.indexes == nil {
		out := make([]int, count)
		for i := range out {
			out[i] = i
		}
		return out, nil
	}
	if len(l.indexes) != count {
		return nil, fmt.Errorf("level %s has %d indexes for %d objects", l.kind, len(l.indexes), count)
	}
	sorted := slices.Clone(l.indexes)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != count {
		return nil, fmt.Errorf("level %s has a duplicate index", l.kind)
	}
	return l.indexes, nil
}
