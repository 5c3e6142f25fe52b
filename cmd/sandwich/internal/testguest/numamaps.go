package testguest

import (
	"fmt"
	"strconv"
	"strings"
)

// Mapping is a line of /proc/PID/numa_maps: a range of memory with one policy.
type Mapping struct {
	Start  uint64
	Policy string      // default, prefer:1, bind:0-1, ...
	File   string      // "" for memory without a file
	Pages  map[int]int // by node, of PageKiB each
	KiB    int         // size of a page
}

// ParseNumaMaps parses /proc/PID/numa_maps.
func ParseNumaMaps(text string) ([]Mapping, error) {
	var all []Mapping
	for line := range strings.Lines(text) {
		m, err := parseMapping(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("numa_maps line %q: %w", strings.TrimSpace(line), err)
		}
		all = append(all, m)
	}
	return all, nil
}

func parseMapping(fields []string) (m Mapping, err error) {
	if len(fields) < 2 {
		return m, fmt.Errorf("%d fields", len(fields))
	}
	m = Mapping{Policy: fields[1], Pages: map[int]int{}, KiB: 4}
	if m.Start, err = strconv.ParseUint(fields[0], 16, 64); err != nil {
		return m, err
	}
	for _, f := range fields[2:] {
		key, value, _ := strings.Cut(f, "=")
		switch node, isNode := strings.CutPrefix(key, "N"); {
		case key == "file":
			m.File = value
		case key == "kernelpagesize_kB":
			m.KiB, err = strconv.Atoi(value)
		case isNode && node != "":
			err = m.count(node, value)
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *Mapping) count(node, pages string) error {
	n, err := strconv.Atoi(node)
	if err != nil {
		return err
	}
	m.Pages[n], err = strconv.Atoi(pages)
	return err
}
