package calibrate

import (
	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
)

// panelSample is what the first worker reads of panels for one sample: a millisecond or two.
const panelSample = 32 << 20

// panelFigures are what one worker reads of weights from memory as it multiplies one row by them,
// with each line asked for once ahead and with none: they lie about a fifth apart on some machines,
// either way. None where no code is generated, or the memory is too little to leave the caches.
func (b *bench) panelFigures(isa microkernel.ISA) (out []*figure, err error) {
	if !isa.Generates() {
		return nil, nil
	}
	region, err := b.cold()
	if err != nil || region == nil {
		return nil, err
	}
	at := 0 // samples of both walk through the region one behind the other
	for _, ask := range []struct {
		level string
		ahead int
	}{{profiles.Weights, 0}, {profiles.WeightsAhead, microkernel.AskOnce}} {
		r, err := microkernel.NewPanelReader(isa, ask.ahead)
		if err != nil {
			return nil, err
		}
		if !r.Native() {
			return nil, nil
		}
		first := firstWorkers(1)
		out = append(out, &figure{workers: first, ceiling: profiles.Ceiling{Kind: profiles.Bandwidth, Level: ask.level,
			PUs: 1, CPUs: b.pusOf(first), Figure: profiles.Figure{Unit: "B/s"}},
			work: func(int) float64 {
				done := 0
				for ; done < panelSample; done += r.Bytes {
					if at+r.Bytes > len(region) {
						at = 0
					}
					r.Read(region[at:])
					at += r.Bytes
				}
				return float64(done)
			}})
	}
	return out, nil
}

// Bytes of a region that leaves the last-level caches.
const (
	leastCold = 128 << 20
	mostCold  = 1 << 30
)

// cold is memory that no cache holds: what the bandwidth is read from, or as much of its own; nil
// where there is not as much.
func (b *bench) cold() ([]byte, error) {
	llc := b.cacheSizes().llc
	if b.buffer != nil && b.buffer.Len() >= 2*llc && b.buffer.Len() >= leastCold {
		return b.buffer.Bytes(), nil
	}
	size := min(max(3*llc, leastCold), mostCold)
	if free := mem.Available(); size < 2*llc || free >= 0 && int64(size) > free/4 {
		return nil, nil
	}
	buf, err := mem.Alloc(size, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return nil, err
	}
	b.own = append(b.own, buf)
	buf.Touch(0, buf.Len())
	return buf.Bytes(), nil
}
