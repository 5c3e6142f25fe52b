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
	in        inputs
	inbox     device.Slice  // inputs of the forward; host-visible
	inputs    []device.Copy // from inbox, in the first segment
	stage     device.Slice  // new keys and values, copied by segments; host-visible
	mark      mark          // of segments
	border    handover.Stage
	staged    []stagedBlock
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
	return r.marks.allocate(&s.mark)
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
	list := append(s.acts[:], s.quantized, s.inbox, s.stage, s.mark.at, s.in.angles, s.in.words)
	for _, b := range list {
		if b.Buffer != nil {
			err = errors.Join(err, b.Buffer.Free())
		}
	}
	return errors.Join(err, s.border.Free())
}
