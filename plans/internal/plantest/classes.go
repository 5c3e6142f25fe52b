package plantest

import (
	"sync"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/topotree"
)

// Heterogeneous returns the plan of Parts with its second PU in a class of AVX2 workers.
func Heterogeneous(t *testing.T) *plans.Plan {
	t.Helper()
	p, _, _ := Parts(t)
	avx2, err := microkernel.ParseISA("avx2")
	if err != nil {
		t.Fatal(err)
	}
	p.Classes = []plans.Class{{Name: "little", ISA: avx2, PUs: topotree.NewCPUSet(1)}}
	for _, ph := range []*plans.Phase{&p.Prefill, &p.Decode} {
		var tables []plans.Table
		for _, x := range ph.Tables {
			for i := range x.Rules {
				x.Rules[i].Schedule.WaysM, x.Rules[i].Schedule.WaysN = 0, 0
			}
			tables = append(tables, x)
		}
		for _, x := range tables {
			rules := []plans.Rule{}
			for _, r := range x.Rules {
				k := narrow(avx2, r.Schedule.Kernel)
				r.Schedule.Kernel, r.Schedule.BM, r.Schedule.BN = k, k.MR, k.NR
				rules = append(rules, r)
			}
			tables = append(tables, plans.Table{WeightKey: x.WeightKey, Class: "little", Rules: rules})
		}
		ph.Tables = tables
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return &p
}

// narrow returns a kernel of AVX2 for the weights and path of another kernel.
func narrow(avx2 microkernel.ISA, k microkernel.Spec) microkernel.Spec {
	narrowest.Lock()
	defer narrowest.Unlock()
	key := [2]string{k.B.String(), k.Compute.String()}
	if s, ok := narrowest.of[key]; ok {
		return s
	}
	s := microkernel.Space(microkernel.HasAVX2, avx2, k.Compute, k.B)[0]
	if narrowest.of == nil {
		narrowest.of = map[[2]string]microkernel.Spec{}
	}
	narrowest.of[key] = s
	return s
}

var narrowest struct {
	sync.Mutex
	of map[[2]string]microkernel.Spec
}
