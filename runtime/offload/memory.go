package offload

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/runtime/device"
	"sandwich/runtime/exec"
	"sandwich/runtime/model"
)

// memory is what a Runner holds on the device for as long as it lives.
type memory struct {
	dev     device.Device
	buffers []device.Buffer // all of them, for free
	weights []device.Slice  // by weight of the model
	vectors map[*model.Vector]device.Slice
	kv      device.Slice
	bytes   uint64
}

// load copies the weights and vectors of a model to the device and allocates the KV cache.
func load(dev device.Device, a *exec.Assembly) (*memory, error) {
	m := &memory{dev: dev, vectors: map[*model.Vector]device.Slice{}}
	if err := m.load(a); err != nil {
		return nil, errors.Join(err, m.free())
	}
	return m, nil
}

func (m *memory) load(a *exec.Assembly) (err error) {
	need := uint64(a.Weights.Bytes()) + uint64(a.KV.Bytes())
	if i := m.dev.Info(); i.FreeBytes > 0 && i.FreeBytes < need {
		return fmt.Errorf("%w: weights and KV cache take %d MiB, the device has %d MiB free; lower --ctx or --parallel",
			device.ErrMemory, need>>20, i.FreeBytes>>20)
	}
	for i := range a.Model.Weights {
		p := a.Weights.At(0, i)
		s, err := m.upload(unsafe.Slice((*byte)(p.Data), p.Layout.Bytes()))
		if err != nil {
			return err
		}
		m.weights = append(m.weights, s)
	}
	for i := range a.Model.Ops {
		op := &a.Model.Ops[i]
		for _, v := range append([]*model.Vector{op.Norm, op.Post, op.QNorm, op.KNorm}, op.Bias...) {
			if err := m.vector(v); err != nil {
				return err
			}
		}
	}
	m.kv, err = m.alloc(uint64(a.KV.Bytes()), device.DeviceLocal)
	return err
}

// vector copies a norm weight or a bias, once.
func (m *memory) vector(v *model.Vector) (err error) {
	if v == nil || m.vectors[v].Buffer != nil {
		return nil
	}
	m.vectors[v], err = m.upload(bytesOf(v.Data))
	return err
}

// upload copies bytes to a buffer of their own. Its size is a multiple of 16.
func (m *memory) upload(data []byte) (device.Slice, error) {
	s, err := m.alloc(uint64(len(data)), device.DeviceLocal)
	if err != nil {
		return s, err
	}
	return s, m.dev.Write(s.Buffer, 0, data)
}

func (m *memory) alloc(bytes uint64, usage device.Usage) (device.Slice, error) {
	b, err := m.dev.Alloc(max(16, (bytes+15)/16*16), usage)
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
