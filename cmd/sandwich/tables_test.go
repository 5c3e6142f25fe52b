package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"sandwich/cmd/sandwich/internal/cli/bench"
	"sandwich/cmd/sandwich/internal/cli/bench/llm"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/cmd/sandwich/internal/table"
)

// widest returns the width of the longest line.
func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, twwidth.Width(strings.TrimRight(line, "\n")))
	}
	return most
}

// TestTablesFit prints the table of every verb with values as long as real ones are, on a terminal
// of 80 columns and through a pipe.
func TestTablesFit(t *testing.T) {
	tables := map[string]table.Table{
		"bench gemm":       {Header: bench.GemmReport(false).Columns, Numbers: bench.GemmReport(false).Numbers},
		"bench gemm peers": {Header: bench.GemmReport(true).Columns, Numbers: bench.GemmReport(true).Numbers},
		"bench llm":        {Header: llm.LlmReport.Columns, Numbers: llm.LlmReport.Numbers},
		"bench llm switch": {Header: llm.SwitchReport.Columns, Numbers: llm.SwitchReport.Numbers},
		"bench clients":    {Header: llm.ClientsReport.Columns, Numbers: llm.ClientsReport.Numbers},
		"bench attention":  {Header: bench.AttentionReport.Columns, Numbers: bench.AttentionReport.Numbers},
		"bench allreduce":  {Header: bench.ReduceReport.Columns, Numbers: bench.ReduceReport.Numbers},
		"bench search":     {Header: bench.SearchReport.Columns, Numbers: bench.SearchReport.Numbers},
		"probe": {Header: []string{"ceiling", "of", "PUs", "median", "min to max", "source"},
			Numbers: []int{2, 3, 4}},
		"probe objects": {Header: []string{"object", "id", "size", "cpus"}, Numbers: []int{1, 2}},
		"tree walk":     {Header: []string{"PUs", "transforms", "digest"}, Numbers: []int{0}},
		"model inspect": {Header: []string{"key", "value"}},
		"plan show":     {Header: []string{"weight NxK, rows M", "kernel", "slice", "ways", ""}},
		"plan diff":     {Header: []string{"prefill 128256x4096:q4_K", "a/long/path/to/before.plan", "after.plan"}},
		"tune": {Header: []string{"decode, tokens/s", "batch 1, 4 of 32 layers", "batch 16", "n", "gain"},
			Numbers: []int{1, 2, 3, 4}},
	}
	for name, tab := range tables {
		for i := range 3 {
			row := make([]string, len(tab.Header))
			for c := range row {
				row[c] = fmt.Sprintf("avx512/int8/q4_K/14x32/ku32/load/vnni/pf16384 slice 132x%dxall, PUs "+
					"0-23,48-71", i)
				if slices.Contains(tab.Numbers, c) {
					row[c] = fmt.Sprintf("1280%d ± 1%d60", i, c)
				}
			}
			tab.Rows = append(tab.Rows, row)
		}
		print := func(columns string) string {
			t.Setenv("COLUMNS", columns)
			var out bytes.Buffer
			if err := show.Table(&out, tab.Header, tab.Rows, tab.Numbers...); err != nil {
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
