package offload

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/runtime/device"
	"sandwich/runtime/exec"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/offload/handover"
	"sandwich/runtime/offload/unified"
)

// memory is what a Runner holds on the device for as long as it lives.
type memory struct {
	dev      device.Device
	buffers  []device.Buffer // all of them, for free
	shared   *unified.Memory // has the buffers of memory that the cores use too
	weights  []device.Slice  // by weight of the model
	vectors  map[*model.Vector]device.Slice
	kv       device.Slice
	sharesKV bool   // kv is the cache of the cores
	bytes    uint64 // of buffers
	copied   uint64 // of weights and KV cache in addition to those of the cores
}

// load copies the weights and vectors of a model to the device, but for those of the parts that the
// cores compute, and allocates the KV cache, unless they are in shared memory.
func load(dev device.Device, a *exec.Assembly, onCores handover.Parts, shared *unified.Memory) (*memory, error) {
	m := &memory{dev: dev, shared: shared, vectors: map[*model.Vector]device.Slice{}}
	if err := m.load(a, onCores); err != nil {
		return nil, errors.Join(err, m.free())
	}
	return m, nil
}

func (m *memory) load(a *exec.Assembly, onCores handover.Parts) (err error) {
	m.weights = make([]device.Slice, len(a.Model.Weights))
	for i := range m.weights {
		if onCores.Multiply(a.Model, i) {
			continue
		}
		if m.weights[i], err = m.weight(a, i); err != nil {
			return err
		}
	}
	for i := range a.Model.Ops {
		op := &a.Model.Ops[i]
		if onCores.Has(i) {
			continue
		}
		for _, v := range append([]*model.Vector{op.Norm, op.Post, op.QNorm, op.KNorm, op.Sinks}, op.Bias...) {
			if err := m.vector(v); err != nil {
				return err
			}
		}
	}
	if b := m.shared.Buffer(a.KV.Memory(0)); b != nil {
		m.kv, m.sharesKV = device.Slice{Buffer: b}, true
		return nil
	}
	n := kvBytes(a, onCores)
	m.kv, err = m.alloc(n, device.DeviceLocal)
	m.copied += n
	return err
}

// kvBytes returns the size of the KV cache up to the last layer whose attention the device
// computes.
func kvBytes(a *exec.Assembly, onCores handover.Parts) (end uint64) {
	layers := &a.Shards.List[0].Layers
	for i := range a.Model.Ops {
		op := &a.Model.Ops[i]
		if op.Kind == model.OpRotate && !onCores.Has(i) && layers.Keeps(op.Layer) {
			p := a.KV[0].Place(op.Layer)
			end = max(end, uint64(p.First+p.Block*a.Stores[layers.Of[op.Layer]].Blocks))
		}
	}
	return end
}

// weight returns weight i of the model: in the memory of the cores if that is shared, else a copy.
func (m *memory) weight(a *exec.Assembly, i int) (device.Slice, error) {
	p, all := a.Weights.At(0, i), a.Weights.Memory(0)
	if b := m.shared.Buffer(all); b != nil {
		at := uint64(uintptr(p.Data) - uintptr(all.Pointer()))
		if at%alignment == 0 {
			return device.Slice{Buffer: b, Offset: at}, nil
		}
	}
	m.copied += uint64(p.Layout.Bytes())
	return m.upload(unsafe.Slice((*byte)(p.Data), p.Layout.Bytes()))
}

// needs is the memory that a Runner takes on its device, in bytes.
type needs struct{ weights, kv, activations uint64 }

// infoOf describes a device. Unified memory is not more than what this host has available.
func infoOf(d device.Device) device.Info {
	i := d.Info()
	if host := mem.Available(); i.Unified && host >= 0 && (i.FreeBytes == 0 || uint64(host) < i.FreeBytes) {
		i.FreeBytes = max(1, uint64(host))
	}
	return i
}

func (n needs) all() uint64 { return n.weights + n.kv + n.activations }

// spare returns memory for programs, marks, and inputs and staging of forwards, which are smaller
// than activations.
func (n needs) spare() uint64 { return n.all()/16 + n.activations + marksBytes }

const marksBytes = 64 << 10 // about what the marks of submissions take

// refusal returns an error that wraps device.ErrMemory and has the numbers.
func (n needs) refusal(i device.Info) error {
	free := "less is free on " + i.Name
	if i.FreeBytes > 0 || i.MemoryBytes > 0 {
		free = fmt.Sprintf("%s of %s are free on %s", mem.FormatBytes(int64(i.FreeBytes)),
			mem.FormatBytes(int64(i.MemoryBytes)), i.Name)
	}
	return fmt.Errorf("%w: weights take %s, the KV cache %s and activations %s; %s: lower --ctx or --parallel, or end "+
		"other programs that use the device", device.ErrMemory, mem.FormatBytes(int64(n.weights)),
		mem.FormatBytes(int64(n.kv)), mem.FormatBytes(int64(n.activations)), free)
}

// vector copies a norm weight or a bias, once.
func (m *memory) vector(v *model.Vector) (err error) {
	if v == nil || m.vectors[v].Buffer != nil {
		return nil
	}
	m.vectors[v], err = m.upload(bytesOf(v.Data))
	return err
}

// upload copies bytes to a buffer of their own.
func (m *memory) upload(data []byte) (device.Slice, error) {
	s, err := m.alloc(uint64(len(data)), device.DeviceLocal)
	if err != nil {
		return s, err
	}
	return s, m.dev.Write(s.Buffer, 0, data)
}

func (m *memory) alloc(bytes uint64, usage device.Usage) (device.Slice, error) {
	b, err := allocate(m.dev, bytes, usage)
	if err != nil {
		return device.Slice{}, err
	}
	m.buffers = append(m.buffers, b)
	m.bytes += b.Bytes()
	return device.Slice{Buffer: b}, nil
}

func (m *memory) free() (err error) {
	for _, b := range m.buffers {
		err = errors.Join(err, b.Free())
	}
	m.buffers = nil
	return err
}

// bytesOf returns the memory of a slice of words.
func bytesOf[T float32 | int32 | uint32](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
}

const alignment = 16 // of bindings, bytes

// resize makes a buffer at least as large. Its contents are lost if it grows.
func resize(dev device.Device, s *device.Slice, bytes uint64, usage device.Usage) error {
	if s.Buffer != nil && s.Buffer.Bytes() >= bytes {
		return nil
	}
	if s.Buffer != nil {
		if err := s.Buffer.Free(); err != nil {
			return err
		}
		s.Buffer = nil
	}
	b, err := allocate(dev, bytes, usage)
	s.Buffer = b
	return err
}

// allocate allocates a buffer of a size rounded up to the alignment, at least one of it.
func allocate(dev device.Device, bytes uint64, usage device.Usage) (device.Buffer, error) {
	return dev.Alloc(max(alignment, (bytes+alignment-1)/alignment*alignment), usage)
}
