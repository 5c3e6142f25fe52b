package tuner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/exec"
	"sandwich/runtime/pool"
	"sandwich/tuner/search"
)

func ints(s string) (out []int) {
	for _, f := range strings.Split(s, ",") {
		v, _ := strconv.Atoi(f)
		out = append(out, v)
	}
	return
}

// SHAPES=2048x2048 MS=512 T=1 COLD=0 CANDS="bm:bn:bk:mr:nr:pf;..." ROUNDS=5
func TestZZ(t *testing.T) {
	host, _ := profiles.Live()
	threads, _ := strconv.Atoi(os.Getenv("T"))
	rounds, _ := strconv.Atoi(os.Getenv("ROUNDS"))
	typ := os.Getenv("TYPE")
	if typ == "" {
		typ = "f32"
	}
	for _, sh := range strings.Split(os.Getenv("SHAPES"), " ") {
		d := strings.Split(sh, "x")
		n, _ := strconv.Atoi(d[0])
		k, _ := strconv.Atoi(d[1])
		shape := plans.ModelShape{Arch: "bench", Name: "gemm", Hidden: 64, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 64, FFN: 64, Vocab: 64,
			Weights: []plans.WeightShape{{Role: "w", N: n, K: k, Type: typ, Count: 1}}}
		plan, err := plans.Default(host, shape, plans.DefaultOptions{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		key := plan.Prefill.Tables[0].WeightKey
		kernels, _ := exec.NewKernels(exec.PlanISA(plan), plan)
		p, err := pool.New(plan.Prefill.PUs, pool.Options{Pin: true})
		if err != nil {
			t.Fatal(err)
		}
		o := ProductOptions{Plan: plan, Rows: ints(os.Getenv("MS")), Cold: os.Getenv("COLD") == "1", Seed: 1}
		p.Lead(func(l *pool.Leader) {
			b, err := newBench(context.Background(), l, len(plan.Prefill.PUs), kernels, productSize(key, o), 1)
			if err != nil {
				t.Fatal(err)
			}
			defer b.free()
			w, _ := plan.Weight(key)
			compute, _ := microkernel.ParseCompute(w.Compute)
			for _, m := range o.Rows {
				base, _ := plan.Prefill.Lookup(key, m)
				cands := []plans.Schedule{base}
				for _, c := range strings.Split(os.Getenv("CANDS"), ";") {
					f := strings.Split(c, ":")
					if len(f) < 6 {
						continue
					}
					s := base
					set := func(p *int, x string) {
						if x != "" {
							*p, _ = strconv.Atoi(x)
						}
					}
					set(&s.Kernel.MR, f[3])
					set(&s.Kernel.NR, f[4])
					set(&s.BM, f[0])
					set(&s.BN, f[1])
					set(&s.BK, f[2])
					if f[5] != "" {
						v, _ := strconv.Atoi(f[5])
						s.Kernel = s.Kernel.WithPrefetch(v)
					}
					if len(f) > 6 && f[6] != "" {
						set(&s.Kernel.KU, f[6])
					}
					if len(f) > 7 && f[7] != "" {
						ways := ints(f[7])
						s.WaysM, s.WaysN = ways[0], ways[1]
					}
					if err := s.Kernel.Validate(); err != nil {
						fmt.Println("skip", s, err)
						continue
					}
					cands = append(cands, s)
				}
				times := make([][]float64, len(cands))
				for r := range rounds {
					for j := range cands {
						i := (j + r) % len(cands)
						smp, err := b.Time(search.Trial{Key: key, Compute: compute, M: m, Columns: key.N, Schedule: cands[i],
							Limit: search.Limit{MinReps: 3, MaxReps: 2000, Time: 60 * time.Millisecond}})
						if err != nil {
							t.Fatal(err)
						}
						slices.Sort(smp.Seconds)
						times[i] = append(times[i], smp.Seconds[len(smp.Seconds)/2])
					}
				}
				for i, c := range cands {
					slices.Sort(times[i])
					fl := 2 * float64(m) * float64(n) * float64(k) / 1e9
					fmt.Printf("%s m=%d t=%d %-58s med %.1f best %.1f worst %.1f\n", sh, m, threads, c, fl/times[i][len(times[i])/2], fl/times[i][0], fl/times[i][len(times[i])-1])
				}
			}
		})
		p.Close()
	}
}
