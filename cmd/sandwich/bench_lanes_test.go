package main

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
)

// TestBenchLoadLanes checks that each arrangement of lanes on a simulated device has a row, and the
// refusals of flags.
func TestBenchLoadLanes(t *testing.T) {
	out, failure, code := execute(t, loadArgs("lanes", "--duration", "300ms", "--reactive", "1200", "--proactive",
		"1200", "--ctx", "40", "--speeds", "20", "--format", "csv")...)
	table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || err != nil || len(table) != 5 {
		t.Fatalf("exit code %d, %s, %v\n%s", code, failure, err, out)
	}
	for i, want := range [][2]string{{"-", "cores"}, {"20", "shared"}, {"20", "disaggregated"}, {"20", "divided"}} {
		row := table[i+1]
		ttft, err := strconv.ParseFloat(row[2], 64)
		rate, err2 := strconv.ParseFloat(row[7], 64)
		if row[0] != want[0] || row[1] != want[1] || err != nil || err2 != nil || ttft <= 0 || rate <= 0 {
			t.Errorf("row %d is %v", i, row)
		}
	}
	for flag, text := range map[string]string{
		"--speeds=0": "--speeds 0 is out of range", "--bandwidth=-1": "--bandwidth -1 is out of range",
		"--launch=2s": "--launch 2s is out of range", "--copy=0": "--copy 0 is out of range",
		"--runs=0": "--runs 0 is out of range", "--policy=fcfs,share": "give one policy",
		"--attention=dpbf17": "--attention",
	} {
		if _, failure, code := execute(t, loadArgs("lanes", flag)...); code != 2 || !strings.Contains(failure, text) {
			t.Errorf("%s: exit code %d, %s", flag, code, failure)
		}
	}
}
