package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// widest is the width of the longest line.
func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, twwidth.Width(strings.TrimRight(line, "\n")))
	}
	return most
}

// TestTablesFit prints the table of every verb with values as long as real ones are, on a terminal
// of 80 columns and through a pipe.
func TestTablesFit(t *testing.T) {
	tables := map[string]table{
		"bench gemm":       {header: gemmReport(false).columns, numbers: gemmReport(false).numbers},
		"bench gemm peers": {header: gemmReport(true).columns, numbers: gemmReport(true).numbers},
		"bench llm":        {header: llmReport.columns, numbers: llmReport.numbers},
		"bench llm switch": {header: switchReport.columns, numbers: switchReport.numbers},
		"bench clients":    {header: clientsReport.columns, numbers: clientsReport.numbers},
		"bench attention":  {header: attentionReport.columns, numbers: attentionReport.numbers},
		"bench allreduce":  {header: reduceReport.columns, numbers: reduceReport.numbers},
		"bench search":     {header: searchReport.columns, numbers: searchReport.numbers},
		"probe": {header: []string{"roof", "of", "PUs", "median", "min to max", "source"},
			numbers: []int{2, 3, 4}},
		"probe objects": {header: []string{"object", "id", "size", "cpus"}, numbers: []int{1, 2}},
		"tree walk":     {header: []string{"PUs", "transforms", "digest"}, numbers: []int{0}},
		"model inspect": {header: []string{"key", "value"}},
		"plan show":     {header: []string{"weight NxK, rows M", "kernel", "slice", "ways", ""}},
		"plan diff":     {header: []string{"prefill 128256x4096:q4_K", "a/long/path/to/before.plan", "after.plan"}},
		"tune": {header: []string{"decode, tokens/s", "batch 1, 4 of 32 layers", "batch 16", "n", "gain"},
			numbers: []int{1, 2, 3, 4}},
	}
	for name, table := range tables {
		for i := range 3 {
			row := make([]string, len(table.header))
			for c := range row {
				row[c] = fmt.Sprintf("avx512/int8/q4_K/14x32/ku32/load/vnni/pf16384 slice 132x%dxall, PUs "+
					"0-23,48-71", i)
				if slices.Contains(table.numbers, c) {
					row[c] = fmt.Sprintf("1280%d ± 1%d60", i, c)
				}
			}
			table.rows = append(table.rows, row)
		}
		print := func(columns string) string {
			t.Setenv("COLUMNS", columns)
			var out bytes.Buffer
			if err := printTable(&out, table.header, table.rows, table.numbers...); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		if text := print("80"); widest(text) > 80 {
			t.Errorf("%s: %d columns\n%s", name, widest(text), text)
		}
		if text := print(""); strings.Count(text, "\n") != 4 {
			t.Errorf("%s: not a line a row where stdout is no terminal\n%s", name, text)
		}
	}
}

// Whatever is folded and cut, no line is too long and no letter is lost.
func TestFitLosesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var tab table
		for c := range 1 + random.IntN(14) {
			tab.header = append(tab.header, strings.Repeat("hd ", random.IntN(6)))
			if random.IntN(2) == 0 {
				tab.numbers = append(tab.numbers, c)
			}
		}
		for r := range random.IntN(5) {
			row := make([]string, random.IntN(len(tab.header)+1))
			for c := range row {
				row[c] = fmt.Sprintf("%c%d", 'a'+c, r)
				if !slices.Contains(tab.numbers, c) {
					row[c] += strings.Repeat([]string{"x", "y,", "é/", "-", " z"}[random.IntN(5)], random.IntN(40))
				}
			}
			tab.rows = append(tab.rows, row)
		}
		limit := 40 + random.IntN(80)
		letters := map[string]bool{}
		for _, part := range tab.fit(limit) {
			if part.width() > limit {
				t.Fatalf("%d columns, limit %d: %q %q", part.width(), limit, part.header, part.rows)
			}
			for _, row := range part.rows {
				for _, cell := range row {
					letters[squeeze(cell)] = true
				}
			}
		}
		for _, row := range tab.rows {
			for _, cell := range row {
				if !letters[squeeze(cell)] {
					t.Fatalf("limit %d: %q is gone", limit, cell)
				}
			}
		}
	}
}

// squeeze leaves out what folding may change.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestFold(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 10, "short"},
		{"two words", 5, "two\nwords"},
		{"0-3,8-11,16-19", 8, "0-3,\n8-11,\n16-19"},
		{"avx512/int8/q8_0", 12, "avx512/int8/\nq8_0"},
		{"tales-6m-q8_0", 8, "tales-\n6m-q8_0"},
		{"abcdefgh", 3, "abc\ndef\ngh"},
		{"up to 10 % more", 8, "up to\n10 %\nmore"},
		{"世界世界", 4, "世界\n世界"},
		{"世", 1, "世"},
		{"  M 1-4", 20, "  M 1-4"},
	} {
		if got := fold(c.text, c.limit); got != c.want {
			t.Errorf("fold(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
