package offload

import (
	"errors"

	"sandwich/microkernel"
	"sandwich/runtime/device"
	"sandwich/runtime/model"
	"sandwich/runtime/offload/handover"
)

// set is the activations of a forward, which stay on the device while it is halted.
type set struct {
	acts      [model.NumBufs]device.Slice
	quantized device.Slice // rows of quantized activations
	parts     device.Slice // results of blocks, see kernels.AttentionPart; none: they are not computed
	in        inputs
	inbox     device.Slice  // inputs of the forward; host-visible
	outbox    []byte        // what inbox will have, if it is not host-visible
	inputs    []device.Copy // from inbox, in the first segment
	stage     device.Slice  // new keys and values, copied by segments; host-visible
	logits    device.Slice  // copied by the last segment; host-visible
	mark      mark          // of forwards, with a slot for each first op of a segment
	border    handover.Stage
	staged    []stagedBlock
	byRow     bool   // staged has the rows of the batch by layer, not whole blocks
	shape     []byte // of the batch, see inputs.shape; empty: commands are not used again
	recorded  recordings
}

// resize makes a buffer of the set at least as large. No segment of the set may be in flight.
func (s *set) resize(dev device.Device, to *device.Slice, bytes uint64, usage device.Usage) error {
	if bytes == 0 || to.Buffer != nil && to.Buffer.Bytes() >= bytes {
		return nil
	}
	if err := s.recorded.free(); err != nil {
		return err
	}
	return resize(dev, to, bytes, usage)
}

// recordings are commands of segments that later forwards use again. They refer to the buffers of
// one set, of which no segment may be in flight when they are freed.
type recordings struct {
	list map[recordingKey]device.Commands
}

// recordingKey is the shape of a batch and the ops [from, to).
type recordingKey struct {
	shape    string
	from, to int
}

// maxRecordings is the number of recordings from which a forward begins without them.
const maxRecordings = 64

// find returns the commands of a segment, nil if there are none.
func (r *recordings) find(shape []byte, from, to int) device.Commands {
	return r.list[recordingKey{string(shape), from, to}]
}

// keep adds the commands of a segment.
func (r *recordings) keep(shape []byte, from, to int, c device.Commands) {
	if r.list == nil {
		r.list = map[recordingKey]device.Commands{}
	}
	r.list[recordingKey{string(shape), from, to}] = c
}

// limit frees the recordings if they are too many.
func (r *recordings) limit() error {
	if len(r.list) < maxRecordings {
		return nil
	}
	return r.free()
}

// abandon forgets the recordings without freeing them, since some may be pending.
func (r *recordings) abandon() { clear(r.list) }

func (r *recordings) free() (err error) {
	for _, c := range r.list {
		err = errors.Join(err, c.Free())
	}
	clear(r.list)
	return err
}

func (r *Runner) newSet(logitRows int) (*set, error) {
	s := &set{}
	if err := r.allocate(s, logitRows); err != nil {
		return nil, errors.Join(err, s.free())
	}
	return s, nil
}

func (r *Runner) allocate(s *set, logitRows int) (err error) {
	for i := range s.acts {
		if r.strides[i] == 0 {
			continue
		}
		n := uint64(4 * r.strides[i] * r.bufferRows(model.Buf(i), logitRows))
		if err = resize(r.dev, &s.acts[i], n, device.DeviceLocal); err != nil {
			return err
		}
	}
	if n := r.quantizedWords(); n > 0 {
		if err = resize(r.dev, &s.quantized, uint64(4*r.rows*n), device.DeviceLocal); err != nil {
			return err
		}
	}
	if s.border, err = handover.NewStage(r.dev, r.borders); err != nil {
		return err
	}
	return resize(r.dev, &s.mark.at, uint64(len(r.model.Ops)*alignment), device.HostUsage(r.dev))
}

// bufferRows returns the rows of an activation.
func (r *Runner) bufferRows(b model.Buf, logitRows int) int {
	if b == model.BufLogits {
		return max(1, logitRows)
	}
	return r.rows
}

// quantizedWords returns the words of the longest row of quantized activations.
func (r *Runner) quantizedWords() (most int) {
	for i := range r.model.Weights {
		if p := r.assembly.Weights.At(0, i); p.Compute != microkernel.ComputeF32 && !r.onCores.Multiply(r.model, i) {
			most = max(most, p.Compute.ActRowBytes(p.Layout.K)/4)
		}
	}
	return most
}

func (s *set) free() (err error) {
	err = s.recorded.free()
	list := append(s.acts[:], s.quantized, s.parts, s.inbox, s.stage, s.logits, s.mark.at, s.in.angles, s.in.words)
	for _, b := range list {
		if b.Buffer != nil {
			err = errors.Join(err, b.Buffer.Free())
		}
	}
	return errors.Join(err, s.border.Free())
}
