package exec

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// divisions is how many forwards under random divisions each class mix runs: `make divisions` wants
// more.
var divisions = flag.Int("divisions", 0, "forwards of each mix of classes under random divisions; 0: a few")

// unlikeFile is a model that is quick to run, with products that are taller than wide at 64 rows,
// and of widths that no tile divides.
func unlikeFile(t *testing.T, typ gguf.Type, arch string) (*gguf.File, *plans.Plan) {
	c := model.Config{Name: "unlike", Arch: arch, Eps: 1e-5, RopeBase: 10000, Dims: model.Dims{Hidden: 96, Layers: 1,
		Heads: 3, KVHeads: 1, HeadDim: 32, FFN: 160, Vocab: 325, Context: 192}}
	if arch == "qwen3moe" {
		c.Experts = model.Experts{Count: 5, Used: 2, FFN: 64}
	}
	return configFile(t, c, typ, 1)
}

// mixed is a plan of so many workers whose instruction sets are drawn, and whose schedules are.
func mixed(t *testing.T, rng *rand.Rand, base *plans.Plan, workers, ranks int) *plans.Plan {
	t.Helper()
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for w := range workers {
		isas := host.Features().ISAs()
		if isa := isas[min(rng.IntN(2*len(isas)), rng.IntN(len(isas)))]; w > 0 || rng.IntN(3) == 0 {
			parts = append(parts, fmt.Sprintf("%d=%s", w, isa))
		}
	}
	o := heuristic.Options{Weights: base.Weights, ISA: strings.Join(parts, ","), Service: &plans.ServiceConfig{}}
	for r := range ranks {
		var pus plans.PUSet
		for w := r * workers / ranks; w < (r+1)*workers/ranks; w++ {
			pus = append(pus, w)
		}
		o.Service.Ranks = append(o.Service.Ranks, plans.Rank{PUs: pus, NUMANode: -1})
		o.Service.PrefillPUs = append(o.Service.PrefillPUs, pus...)
	}
	o.Service.DecodePUs = o.Service.PrefillPUs
	plan, err := heuristic.Default(host, base.Model, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range plan.Prefill.Tables {
		for i := range table.Rules {
			drawSchedule(rng, host.Features(), &table.Rules[i].Schedule)
		}
	}
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// drawSchedule draws another tile of the same instruction set, and slices for it.
func drawSchedule(rng *rand.Rand, have microkernel.Features, s *plans.Schedule) {
	k := s.Kernel
	list := microkernel.SpaceOf(have, k.ISA, k.Compute, k.B, func(s microkernel.Spec) bool {
		return s.NR <= 64 && !s.MatrixUnit()
	})
	if len(list) > 0 && !raceEnabled {
		k = list[rng.IntN(len(list))]
	}
	s.Kernel, s.Pack = k, rng.IntN(3) == 0
	s.BM, s.BN = k.MR*(1+rng.IntN(6)), k.NR*(1+rng.IntN(4))
}

// TestUnlikeWorkersGiveEqualBits is rule 6 for unlike workers: whatever class a worker is of,
// however products are divided among workers, in chunks or by shares of rates that are drawn,
// logits keep their bits.
func TestUnlikeWorkersGiveEqualBits(t *testing.T) {
	n, plans := 12, 4
	if raceEnabled {
		plans = 1
	}
	if *divisions > 0 {
		n = *divisions
	} else if raceEnabled || testing.Short() {
		n = 2
	}
	for i, c := range []struct {
		typ            gguf.Type
		arch           string
		workers, ranks int
	}{{gguf.F32, "llama", 2, 1}, {gguf.Q8_0, "llama", 4, 1}, {gguf.Q8_0, "qwen3moe", 3, 1}, {gguf.F16, "llama", 4, 2},
		{gguf.Q4_0, "qwen3", 3, 1}} {
		t.Run(fmt.Sprintf("%s/%s/%d", c.arch, c.typ, c.workers), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			file, base := unlikeFile(t, c.typ, c.arch)
			var want [][]float32
			for range plans {
				plan := mixed(t, rng, base, c.workers, c.ranks)
				classes := unlikeRun(t, file, plan, rng, n, &want)
				if classes && len(plan.Classes) == 0 {
					t.Error("the workers of a plan without classes are unlike")
				}
			}
		})
	}
}

// unlikeRun runs forwards of random rows under a plan, with rates that are drawn anew for each, and
// compares the logits of every row with those of the first run of all. It says whether the workers
// are unlike.
func unlikeRun(t *testing.T, file *gguf.File, plan *plans.Plan, rng *rand.Rand, n int, want *[][]float32) bool {
	t.Helper()
	const rows = 80
	plan.Chunk = rows
	a, err := Open(t.Context(), Options{File: file, Plan: plan, Blocks: 4 * kvcache.BlocksFor(rows), LogitRows: rows,
		Unpinned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	e, err := a.Compile(&plan.Prefill, a.Workers)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range n {
		m := 1 + rng.IntN(rows)
		if rng.IntN(2) == 0 {
			m = 1 + rng.IntN(8)
		}
		cache := a.NewCache()
		seq := cache.Open(kvcache.Salt{})
		if !cache.Reserve(seq, m) {
			t.Fatal("no room")
		}
		cache.Cover(seq, m)
		batch := &kvcache.Batch{Prefill: true}
		batch.AddSpan(seq, kvcache.Span{Rows: m})
		for i := range m {
			batch.Tokens = append(batch.Tokens, int32(i*61%200))
			batch.LogitRows = append(batch.LogitRows, int32(i))
		}
		drawRates(rng, e.pacer)
		if _, err := e.Run(a.Workers.Pool, batch, 0, nil); err != nil {
			t.Fatal(err)
		}
		for i := range m {
			got := e.Logits(i)
			if len(*want) == i {
				*want = append(*want, slices.Clone(got))
			}
			for j, w := range (*want)[i] {
				if math.Float32bits(w) != math.Float32bits(got[j]) {
					t.Fatalf("%d rows under %s: logit %d of row %d is %v, and was %v", m, plan.Headline(plans.Untuned),
						j, i, got[j], w)
				}
			}
		}
	}
	return e.pacer != nil
}

// drawRates replaces what a pacer has measured.
func drawRates(rng *rand.Rand, p *pacer) {
	if p == nil {
		return
	}
	v := &p.views[p.last]
	v.version += 1000
	for i := range v.rate {
		v.rate[i] = 1e9 * math.Pow(10, 2*rng.Float64()-1)
		if rng.IntN(200) == 0 {
			v.rate[i] = 0
		}
	}
	for i := range v.spread {
		if v.spread[i] = 0; rng.IntN(4) == 0 {
			v.spread[i] = 1
		}
	}
	copy(p.mean, v.rate)
}

// TestPacer: rates follow what lanes say, do not move for little, and are forgotten where nothing
// is measured any more.
func TestPacer(t *testing.T) {
	p := newPacer(1, 1, []int{0, 1})
	meter := meterOf(0, 512, false)
	say := func(worker int, rate float64) {
		l := &p.lanes[meter*2+worker]
		l.busy.Add(1e7)
		l.cells.Add(int64(rate * 1e-2))
		l.best.Store(int64(rate))
		l.n.Add(leastFirst)
		p.touched[meter].Store(true)
	}
	look := func() []float64 {
		p.looked -= lookEvery
		for i := range p.quiet {
			p.quiet[i] -= lookEvery
		}
		p.look()
		return p.views[p.last].rate[meter*2:][:2]
	}
	near := func(when string, want ...float64) {
		t.Helper()
		for i, r := range p.views[p.last].rate[meter*2:][:2] {
			if math.Abs(r-want[i]) > 0.02*want[i] {
				t.Errorf("%s: the rate of worker %d is %g, want %g", when, i, r, want[i])
			}
		}
	}
	say(0, 2e9)
	if r := look(); r[0] == 0 || r[1] != 0 {
		t.Errorf("one of two workers has a rate: %v", r)
	}
	say(0, 2e9)
	say(1, 1e9)
	look()
	near("measured", 2e9, 1e9)
	version := p.views[p.last].version
	for range 20 {
		say(0, 2.02e9)
		say(1, 1e9)
		look()
	}
	if p.views[p.last].version != version {
		t.Error("a change of one in a hundred has moved the rates")
	}
	for range 60 {
		say(0, 2e9)
		say(1, 0.5e9)
		look()
	}
	near("slower", 2e9, 0.5e9)
	for i := range p.quiet {
		p.quiet[i] -= forgotten
	}
	say(0, 2e9)
	if r := look(); r[1] != 0 {
		t.Errorf("a worker without work keeps the rate %g", r[1])
	}
}

// TestPacerFirstPiece: a worker whose first piece was held up has the rate of its others, and one
// that did a piece or two has none yet.
func TestPacerFirstPiece(t *testing.T) {
	p, l := newPacer(1, 1, []int{0, 1}), pieceLog{}
	meter := meterOf(0, 512, false)
	l.p, l.meter = p, meter
	l.piece(0, 100*time.Microsecond)
	l.piece(1, 10*time.Millisecond)
	l.piece(0, 100*time.Microsecond)
	l.piece(0, 100*time.Microsecond)
	if r := l.rates(); r[0] == 0 || r[1] != 0 {
		t.Errorf("after three pieces and one: %v", r)
	}
	l.piece(1, 100*time.Microsecond)
	l.piece(1, 120*time.Microsecond)
	if r := l.rates(); math.Abs(r[1]/r[0]-1) > 0.01 {
		t.Errorf("a piece that was held up made rates of equals %v", r)
	}
}

// pieceLog tells a pacer of pieces of 1,000 elements.
type pieceLog struct {
	p     *pacer
	meter int
}

func (l *pieceLog) piece(worker int, took time.Duration) {
	lane := &l.p.lanes[l.meter*l.p.workers+worker]
	lane.note(1000, int64(took))
	l.p.touched[l.meter].Store(true)
}

func (l *pieceLog) rates() []float64 {
	l.p.looked -= lookEvery
	l.p.look()
	return l.p.views[l.p.last].rate[l.meter*2:][:2]
}

func TestSlowWorkers(t *testing.T) {
	got, err := slowWorkers("1:0.4,0:1", 3)
	if err != nil || !slices.Equal(got, []float64{1, 0.4, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{"1": "is not a worker", "x:1": "is not a worker", "1:0": "between 0.01",
		"1:Inf": "between 0.01", "1:nan": "between 0.01", "1:1.5": "between 0.01", "3:0.5": "there is no worker 3",
		"-1:0.5": "is not a worker"} {
		if _, err := slowWorkers(text, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
