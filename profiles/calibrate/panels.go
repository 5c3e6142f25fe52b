package calibrate

import (
	"cmp"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// panelSample is the number of bytes of panels that the first worker reads per sample.
const panelSample = 32 << 20

// panels reads a region in calls of some bytes.
type panels struct {
	level string
	bytes int
	read  func([]byte)
}

// panelFigures returns figures of one worker that reads weights from memory: multiplied by one row
// with and without prefetches, and by several rows in shallow and in deep blocks. Which one is
// faster depends on the machine. It returns none without generated code, or if the caches may hold
// the memory and cannot be flushed.
func (b *bench) panelFigures(isa microkernel.ISA) (out []*figure, err error) {
	if !isa.Generates() {
		return nil, nil
	}
	region, flush, err := b.cold()
	if err != nil || region == nil {
		return nil, err
	}
	list, err := b.panels(isa)
	if err != nil {
		return nil, err
	}
	at := 0 // shared offset: all samples walk through the region one after another
	for _, p := range list {
		walk := stretch{region: region, call: p.bytes, max: panelSample / p.bytes * p.bytes, flush: flush}
		if walk.max > len(region) || walk.max == 0 {
			continue // a block does not fit
		}
		f := b.bandwidthFigure(p.level, 1)
		f.warm = func(int) { walk.prepare(&at) }
		f.work = func(int) float64 { return walk.pass(&at, p.read) }
		out = append(out, f)
	}
	return out, nil
}

// panels returns the readers of panels, or none without generated code.
func (b *bench) panels(isa microkernel.ISA) (out []panels, err error) {
	for _, ask := range []struct {
		level string
		ahead int
	}{{profiles.Weights, 0}, {profiles.WeightsAhead, microkernel.MaxSinglePrefetch}} {
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

// minCold is the number of bytes of memory for panels if the caches are small or are flushed.
const minCold = 128 << 20

// cold returns memory of which the caches hold nothing when a sample reads it: the buffer for
// bandwidth, or a new one. If flush is true, the caller must flush it before each pass. It returns
// nil if there is too little memory.
func (b *bench) cold() (region []byte, flush bool, err error) {
	llc := b.cacheSizes().llc
	buffer := b.buffer
	if buffer == nil {
		size := max(3*llc, minCold)
		if size > b.left {
			size = b.left
		}
		if !leavesCaches(size, llc) && b.flushes {
			size = min(size, minCold)
		}
		if size < panelSample {
			return nil, false, nil
		}
		if buffer, err = b.alloc(size, true); err != nil {
			return nil, false, err
		}
		buffer.Touch(0, buffer.Len())
	}
	if buffer.Len() < panelSample {
		return nil, false, nil
	}
	flush = !leavesCaches(buffer.Len(), llc)
	if flush && !b.flushes {
		return nil, false, nil
	}
	return buffer.Bytes(), flush, nil
}
