package handover

import (
	"unsafe"

	"sandwich/runtime/device"
	"sandwich/runtime/exec"
	"sandwich/runtime/model"
)

// Layout describes the activations that are handed over in forwards of up to a number of rows.
type Layout struct {
	strides *[model.NumBufs]int // words between rows on the device
	at      [model.NumBufs]uint64
	Bytes   uint64 // of a Stage
}

// NewLayout returns the layout for parts, of forwards of at most so many rows. strides has the
// words between rows of each activation on the device.
func NewLayout(list Parts, strides *[model.NumBufs]int, rows int) *Layout {
	l := &Layout{strides: strides}
	for buf := range model.NumBufs {
		if list.handOver(buf) {
			l.at[buf] = l.Bytes
			l.Bytes += uint64(4 * strides[buf] * rows)
		}
	}
	return l
}

// handOver reports whether an activation is copied between both sides.
func (l Parts) handOver(buf model.Buf) bool {
	for i := range l {
		for _, b := range append(l[i].In[:len(l[i].In):len(l[i].In)], l[i].Out...) {
			if b == buf {
				return true
			}
		}
	}
	return false
}

// Stage is memory through which the activations of one forward are copied. The zero Stage copies
// nothing.
type Stage struct {
	dev    device.Device
	layout *Layout
	memory device.Buffer
}

// NewStage allocates a Stage.
func NewStage(dev device.Device, l *Layout) (s Stage, err error) {
	if l.Bytes == 0 {
		return Stage{}, nil
	}
	memory, err := dev.Alloc(l.Bytes, device.HostUsage(dev))
	return Stage{dev, l, memory}, err
}

// Free frees the memory. No submission that uses it may be pending.
func (s *Stage) Free() error {
	if s.memory == nil {
		return nil
	}
	return s.memory.Free()
}

// Activations are the activations of a forward on the device, by model.Buf.
type Activations = [model.NumBufs]device.Slice

// ToStage returns the steps that copy what a part reads out of the activations on the device.
func (s *Stage) ToStage(p *Part, acts *Activations, rows int) (steps []device.Step) {
	for _, buf := range p.In {
		steps = append(steps, device.Copy{To: s.slice(buf), From: acts[buf], Bytes: s.bytes(buf, rows)})
	}
	return steps
}

// FromStage returns the steps that copy what a part has written to the activations on the device.
func (s *Stage) FromStage(p *Part, acts *Activations, rows int) (steps []device.Step) {
	for _, buf := range p.Out {
		steps = append(steps, device.Copy{To: acts[buf], From: s.slice(buf), Bytes: s.bytes(buf, rows)})
	}
	return steps
}

func (s *Stage) slice(buf model.Buf) device.Slice {
	return device.Slice{Buffer: s.memory, Offset: s.layout.at[buf]}
}

func (s *Stage) bytes(buf model.Buf, rows int) uint64 {
	return uint64(4 * s.layout.strides[buf] * rows)
}

// Take copies what a part reads to the activations of the cores. The steps of ToStage are complete.
func (s *Stage) Take(p *Part, m *model.Model, to *exec.Buffers, rows int) error {
	for _, buf := range p.In {
		from, err := s.host(buf, rows, true)
		if err != nil {
			return err
		}
		width, cores := m.Width(buf), to.Rows(buf)
		for r := range rows {
			copy(unsafe.Slice(cores.At(r, 0), width), from[r*s.layout.strides[buf]:])
		}
	}
	return nil
}

// Put copies what a part has written out of the activations of the cores. The steps of FromStage
// follow.
func (s *Stage) Put(p *Part, m *model.Model, from *exec.Buffers, rows int) error {
	for _, buf := range p.Out {
		to, err := s.host(buf, rows, false)
		if err != nil {
			return err
		}
		width, cores := m.Width(buf), from.Rows(buf)
		for r := range rows {
			copy(to[r*s.layout.strides[buf]:], unsafe.Slice(cores.At(r, 0), width))
		}
		if s.memory.Host() != nil {
			continue
		}
		if err := s.dev.Write(s.memory, s.layout.at[buf], bytesOf(to)); err != nil {
			return err
		}
	}
	return nil
}

// host returns the rows of an activation in the stage: its memory, or a copy if the host does not
// see it, which is read from the device on demand.
func (s *Stage) host(buf model.Buf, rows int, read bool) ([]float32, error) {
	at, n := s.layout.at[buf], s.bytes(buf, rows)
	if host := s.memory.Host(); host != nil {
		return unsafe.Slice((*float32)(unsafe.Pointer(&host[at])), n/4), nil
	}
	x := make([]float32, n/4)
	if !read {
		return x, nil
	}
	return x, s.dev.Read(s.memory, at, bytesOf(x))
}

func bytesOf(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
}
