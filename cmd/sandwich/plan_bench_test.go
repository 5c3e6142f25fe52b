package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/plan"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
)

// largePlan writes two plans of this host whose plan.yaml has 100 KB or more each: the default
// heuristic, cut into single rows. They differ in one slice of every table.
func largePlan(b *testing.B, dir string) (paths [2]string, size int64) {
	host, err := profiles.Live()
	if err != nil {
		b.Fatal(err)
	}
	shape, err := plan.ShapeOfFile("")
	if err != nil {
		b.Fatal(err)
	}
	const limit = 100 << 10
	for i := range paths {
		p, err := heuristic.Default(host, shape, heuristic.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, ph := range []*plans.Phase{&p.Prefill, &p.Decode} {
			for j := range ph.Tables {
				t := &ph.Tables[j]
				rules := []plans.Rule{}
				rows := limit/80/len(ph.Tables)/2 + 1 // a rule is a line of about 90 bytes
				for m := 1; m <= rows; m++ {
					s, _ := ph.Lookup(t.WeightKey, m)
					s.BN = s.Kernel.NR * (1 + (m+i)%2)
					r := plans.Rule{MLo: m, MHi: m, Schedule: s}
					if m == rows {
						r.MHi = 0
					}
					rules = append(rules, r)
				}
				t.Rules = rules
			}
		}
		paths[i] = filepath.Join(dir, []string{"a.plan", "b.plan"}[i])
		bundle := bundle.Bundle{Plan: *p, Host: *host, Evidence: evidence.Evidence{Version: plans.Version,
			Created: "2026-01-31T12:00:00Z"}}
		if err := bundle.Write(paths[i]); err != nil {
			b.Fatal(err)
		}
		st, err := os.Stat(filepath.Join(paths[i], "plan.yaml"))
		if err != nil || st.Size() < limit {
			b.Fatal(st.Size(), err)
		}
		size = st.Size()
	}
	return paths, size
}

// BenchmarkPlanVerbs runs whole processes on plans of 100 KB. Medians are of wall time, and of the
// CPU time that a process took, which other programs of the machine lengthen less.
func BenchmarkPlanVerbs(b *testing.B) {
	paths, size := largePlan(b, b.TempDir())
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for name, args := range map[string][]string{"version": {"version"}, "show": {"plan", "show", paths[0]},
		"show-kernels": {"plan", "show", "--kernels", paths[0]}, "verify": {"plan", "verify", paths[0]},
		"diff": {"plan", "diff", paths[0], paths[1]}} {
		b.Run(name, func(b *testing.B) {
			var wall, cpu []time.Duration
			for b.Loop() {
				cmd := exec.Command(self)
				cmd.Args = append([]string{"sandwich"}, args...)
				began := time.Now()
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				wall = append(wall, time.Since(began))
				cpu = append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
			slices.Sort(wall)
			slices.Sort(cpu)
			b.ReportMetric(float64(wall[len(wall)/2].Microseconds())/1e3, "ms/median")
			b.ReportMetric(float64(cpu[len(cpu)/2].Microseconds())/1e3, "cpu-ms/median")
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
