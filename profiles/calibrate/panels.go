package calibrate

import (
	"cmp"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
)

// panelSample is what the first worker reads of panels for one sample: a millisecond or two by one
// row, some five by several.
const panelSample = 32 << 20

// assumedL2 stands for an L2 that the system does not tell the size of.
const assumedL2 = 1 << 20

// panels read a region in whole calls of so many bytes.
type panels struct {
	level string
	bytes int
	read  func([]byte)
}

// panelFigures are what one worker reads of weights from memory: as it multiplies one row by them,
// with each line asked for once ahead and with none, and as it multiplies several by blocks of them
// that are shallow or deep. Of either two one is faster by a tenth or more, on some machines this
// one and on some the other. None where no code is generated, or the memory is too little to leave
// the caches.
func (b *bench) panelFigures(isa microkernel.ISA) (out []*figure, err error) {
	if !isa.Generates() {
		return nil, nil
	}
	region, err := b.cold()
	if err != nil || region == nil {
		return nil, err
	}
	list, err := b.panels(isa)
	if err != nil {
		return nil, err
	}
	at := 0 // samples of all walk through the region one behind the other
	for _, p := range list {
		first := firstWorkers(1)
		out = append(out, &figure{workers: first, ceiling: profiles.Ceiling{Kind: profiles.Bandwidth, Level: p.level,
			PUs: 1, CPUs: b.pusOf(first), Figure: profiles.Figure{Unit: "B/s"}},
			work: func(int) float64 {
				done := 0
				for ; done < panelSample; done += p.bytes {
					if at+p.bytes > len(region) {
						at = 0
					}
					p.read(region[at:])
					at += p.bytes
				}
				return float64(done)
			}})
	}
	return out, nil
}

// panels are the readers of panels, none where the machine runs no generated code.
func (b *bench) panels(isa microkernel.ISA) (out []panels, err error) {
	for _, ask := range []struct {
		level string
		ahead int
	}{{profiles.Weights, 0}, {profiles.WeightsAhead, microkernel.AskOnce}} {
		r, err := microkernel.NewPanelReader(isa, ask.ahead)
		if err != nil || !r.Native() {
			return nil, err
		}
		out = append(out, panels{ask.level, r.Bytes, r.Read})
	}
	caches := b.cacheSizes()
	shallow, deep := profiles.FewRowBlocks(caches.l1, cmp.Or(caches.l2, assumedL2))
	for _, block := range []struct {
		level string
		bytes int
	}{{profiles.WeightsShallow, shallow}, {profiles.WeightsDeep, deep}} {
		r, err := microkernel.NewBlockReader(isa, block.bytes)
		if err != nil || !r.Native() {
			return nil, err
		}
		out = append(out, panels{block.level, r.Bytes, r.Read})
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
