package ranking

import (
	"math"
	"testing"

	"sandwich/profiles"
	"sandwich/roofline"
)

// TestSMEPilot compares the built-in machine with the figures of the paper, and reports which of
// its ablations follow from its figure 3 (docs/papers.md).
func TestSMEPilot(t *testing.T) {
	v := func(name string) float64 {
		p, ok := readParams(t)["smepilot"][name]
		if !ok {
			t.Fatalf("docs/papers.params.yaml has no smepilot.%s", name)
		}
		switch x := p.Value.(type) {
		case int:
			return float64(x)
		case float64:
			return x
		}
		t.Fatalf("smepilot.%s is not a number", name)
		return 0
	}
	host, err := profiles.Builtin("m4pro")
	if err != nil {
		t.Fatal(err)
	}
	m := roofline.NewMachine(host)
	set := m.First(8)
	ceiling, err := m.Ceiling(set, roofline.Path{ISA: "neon", Type: "f16"})
	if err != nil {
		t.Fatal(err)
	}
	cpu, sme := ceiling.Targets[0], ceiling.Targets[1]
	vectors := m.Peak(set, roofline.Path{ISA: "neon", Type: "f32"}).Value
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"cpu", cpu.Peak, v("cpu")}, {"sme", sme.Peak, v("sme")}, {"mixed", ceiling.Mixed, v("mixed")},
		{"read", ceiling.Bandwidth, v("read")}, {"sme_read", sme.Read, v("sme_read")},
		{"cpu_f32", vectors, v("cpu_f32")},
		{"softmax", roofline.SoftmaxFLOP, v("softmax")}} {
		if math.Abs(c.got/c.want-1) > 1e-9 {
			t.Errorf("%s of the built-in m4pro is %g, the paper's %g", c.name, c.got, c.want)
		}
	}
	if got := ceiling.Mixed / (cpu.Peak + sme.Peak); math.Abs(got-v("additivity")) > 0.0005 {
		t.Errorf("additivity %.4f", got)
	}
	out := roofline.Output{Rows: 512, Columns: 8192, TileRows: 16, TileColumns: 48}
	gemm := roofline.MatMul(512, 8192, 3072, 16)
	split := ceiling.Alone().Place(gemm, out).Seconds / ceiling.Place(gemm, out).Seconds
	if math.Abs(split/v("no_partition")-1) > 0.01 {
		t.Errorf("without partition %.3f times, the paper's %.2f", split, v("no_partition"))
	}
	if packed := v("gemv_packed_on_path") / v("gemv"); packed < 3 || packed > 4 {
		t.Errorf("packing on the path costs %.2f, outside of reads and writes alone", packed)
	}
	attention := roofline.Step{Work: roofline.Attention(4096, 4096, 0, 24, 8, 128, 16)}
	attention.Between = attention.FLOP / (4 * 128) * roofline.SoftmaxFLOP
	one := ceiling.Place(attention.Work, out)
	ratio := ceiling.Stages(one, attention, vectors, true).Seconds /
		ceiling.Stages(one, attention, vectors, false).Seconds
	if !(ratio > 1 && ratio <= 2 && v("no_pipeline") > 2) {
		t.Errorf("the pipeline gains %.2f", ratio)
	}
	t.Logf("without partition %.2f, without pipeline %.2f, packed on the path %.2f (paper)", split, ratio,
		v("gemv_packed_on_path")/v("gemv"))
}
