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

// TestBenchLoadAblation checks that each part that is switched off has a row, that the switches act
// in the engine, and the refusals of flags.
func TestBenchLoadAblation(t *testing.T) {
	out, failure, code := execute(t, loadArgs("ablation", "--duration", "300ms", "--reactive", "1200", "--proactive",
		"1200", "--ctx", "100", "--speed", "3", "--compile", "100us", "--format", "csv")...)
	table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || err != nil || len(table) != 8 {
		t.Fatalf("exit code %d, %s, %v\n%s", code, failure, err, out)
	}
	for i, want := range []string{"nothing", "elastic split", "disaggregation", "preemption", "piggybacking",
		"bandwidth-aware dispatch", "background compilation"} {
		row := table[i+1]
		ttft, err := strconv.ParseFloat(row[1], 64)
		rate, err2 := strconv.ParseFloat(row[4], 64)
		if row[0] != want || err != nil || err2 != nil || ttft <= 0 || rate <= 0 {
			t.Errorf("row %d is %v", i, row)
		}
		if off := map[string]int{"elastic split": 8, "disaggregation": 8, "piggybacking": 7,
			"background compilation": 9}[want]; off > 0 && row[off] != "0" {
			t.Errorf("%s is switched off: %v", want, row)
		}
	}
	for flag, text := range map[string]string{
		"--speed=0": "--speed 0 is out of range", "--static-speed=-1": "--static-speed -1 is out of range",
		"--compile=11s": "--compile 11s is out of range", "--runs=0": "--runs 0 is out of range",
	} {
		_, failure, code := execute(t, loadArgs("ablation", flag)...)
		if code != 2 || !strings.Contains(failure, text) {
			t.Errorf("%s: exit code %d, %s", flag, code, failure)
		}
	}
}
