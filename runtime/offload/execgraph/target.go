package execgraph

import (
	"time"

	"sandwich/runtime/model/cost"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
)

// OnCores returns the times of the ops of a forward on the cores. The ceilings of the machine
// divide the time of the forward among the ops: total is the time of the forward from which a
// placement is chosen. With a total of 0 the times are those of the ceilings. Bytes are weights,
// keys and values from memory, and activations.
func OnCores(p *cost.Placer, of phase.Phase, rows int, total time.Duration) (*Target, error) {
	works, at, placed, err := p.Place(cost.Phases[of], rows)
	if err != nil {
		return nil, err
	}
	seconds, bytes := make([]float64, len(works)), make([]float64, len(works))
	sum, next := 0.0, 0
	for i := range works {
		for _, part := range works[i].Parts {
			seconds[i] += placed[next].Seconds
			bytes[i] += part.Bytes + part.Moved
			next++
		}
		sum += float64(works[i].Count) * seconds[i]
	}
	scale := 1.0
	if total > 0 && sum > 0 {
		scale = total.Seconds() / sum
	}
	t := &Target{Name: Cores}
	for _, w := range at {
		t.Seconds, t.Bytes = append(t.Seconds, scale*seconds[w]), append(t.Bytes, bytes[w])
	}
	return t, nil
}

// OnDevice returns the times of the ops of a forward on a device, by its forecast. Without a
// forecast (nil) the times are unknown.
func OnDevice(id string, f *offload.Forecast, o Options) *Target {
	t := &Target{Name: id, Unknown: f == nil, Seconds: make([]float64, len(o.Model.Ops))}
	t.Bytes = make([]float64, len(o.Model.Ops))
	for i := range o.Model.Ops {
		t.Static = append(t.Static, offload.Static(&o.Model.Ops[i], o.Rows))
		if f != nil {
			op := f.Op(i, o.Phase, o.Rows, o.Context, o.Heads)
			t.Seconds[i], t.Bytes[i] = op.Seconds, op.Bytes
		}
	}
	if f != nil {
		t.Launches = f.Launches()
		t.Send, t.Receive = f.CopySeconds()
	}
	return t
}
