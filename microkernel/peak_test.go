package microkernel

import (
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/internal/kernel"
)

func TestReaderReadsEveryByte(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 7*kernel.ReaderBlock+100)
	for i := range buf {
		buf[i] = byte(r.Uint32())
	}
	for _, isa := range Host().ISAs() {
		for name, build := range map[string]func(ISA, Features) (*Reader, error){"ahead": NewReader,
			"loads": NewLoader} {
			rd, err := build(isa, Host())
			if err != nil {
				t.Fatal(err)
			}
			readsEveryByte(t, isa.String()+" "+name, rd, buf)
		}
	}
}

func readsEveryByte(t *testing.T, name string, rd *Reader, buf []byte) {
	for _, n := range []int{0, kernel.ReaderBlock - 1, kernel.ReaderBlock, 3 * kernel.ReaderBlock, len(buf)} {
		var want uint64
		if n >= kernel.ReaderBlock {
			want = goRead(buf[:n/kernel.ReaderBlock*kernel.ReaderBlock])
		}
		if got := rd.Read(buf[:n], 1); got != want {
			t.Errorf("%s: %d bytes fold to %x, want %x", name, n, got, want)
		}
	}
	before := rd.Read(buf, 3)
	for i := range buf[:7*kernel.ReaderBlock] {
		buf[i] ^= 0x10
		if rd.Read(buf, 3) == before {
			t.Fatalf("%s: a change of byte %d goes unseen", name, i)
		}
		buf[i] ^= 0x10
	}
}

func TestPeakKernelsRun(t *testing.T) {
	specs := PeakSpecs(Host())
	if len(specs) == 0 || specs[len(specs)-1] != (PeakSpec{Go, "f32"}) {
		t.Fatalf("specs %v do not end in plain Go", specs)
	}
	for _, s := range specs {
		p, err := NewPeak(s, Host())
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		p.Run(0)
		p.Run(100)
		if p.Ops <= 0 {
			t.Errorf("%s does %d operations", s, p.Ops)
		}
	}
}

func TestPeakIsGated(t *testing.T) {
	for _, s := range PeakSpecs(HasAVX2 | HasAVX512 | HasVNNI | HasAVXVNNI | HasBF16 | HasNEON | HasArmBF16) {
		if s.ISA == Go {
			continue
		}
		if _, err := NewPeak(s, 0); err == nil {
			t.Errorf("%s was built for a CPU without it", s)
		}
	}
	if _, err := NewReader(AVX512, HasAVX2); err == nil {
		t.Error("an AVX-512 reader was built for a CPU without it")
	}
	if _, err := NewPeak(PeakSpec{AVX512, "f64"}, Host()); err == nil {
		t.Error("an unknown type was built")
	}
}

func BenchmarkPeak(b *testing.B) {
	for _, s := range PeakSpecs(Host()) {
		p, err := NewPeak(s, Host())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.String(), func(b *testing.B) {
			const iters = 10000
			for b.Loop() {
				p.Run(iters)
			}
			b.ReportMetric(float64(p.Ops)*iters*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
		})
	}
}
