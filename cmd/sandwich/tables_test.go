package main

import (
	"testing"

	"sandwich/cmd/sandwich/internal/showtest"
	"sandwich/cmd/sandwich/internal/table"
)

// TestTablesFit checks that the tables of the verbs fit a terminal of 80 columns.
func TestTablesFit(t *testing.T) {
	showtest.CheckFit(t, map[string]table.Table{
		"probe": {Header: []string{"ceiling", "of", "PUs", "median", "min to max", "source"},
			Numbers: []int{2, 3, 4}},
		"probe objects": {Header: []string{"object", "id", "size", "cpus"}, Numbers: []int{1, 2}},
		"tree walk":     {Header: []string{"PUs", "transforms", "digest"}, Numbers: []int{0}},
		"model inspect": {Header: []string{"key", "value"}},
		"plan show":     {Header: []string{"weight NxK, rows M", "kernel", "slice", "ways", ""}},
		"plan diff":     {Header: []string{"prefill 128256x4096:q4_K", "a/long/path/to/before.plan", "after.plan"}},
		"tune": {Header: []string{"decode, tokens/s", "batch 1, 4 of 32 layers", "batch 16", "n", "gain"},
			Numbers: []int{1, 2, 3, 4}},
	})
}
