package metadata

import "sandwich/runtime/model"

// MaxConv is the limit of positions of a convolution.
const MaxConv = 64

// Delta reads the sizes of a delta rule, and which layers have it.
func (m *Reader) Delta(c *model.Config) {
	r := &c.Recurrence
	r.Conv = m.Size("ssm.conv_kernel", MaxConv)
	r.KeyDim = m.Size("ssm.state_size", 1<<12)
	r.KeyHeads = m.Size("ssm.group_count", 1<<12)
	r.ValueHeads = m.Size("ssm.time_step_rank", 1<<12)
	inner := m.Size("ssm.inner_size", 1<<20)
	if inner%r.ValueHeads != 0 || inner/r.ValueHeads > 1<<12 {
		m.Fail("%s %d is not a multiple of its %d heads, or too large", m.Key("ssm.inner_size"), inner, r.ValueHeads)
		return
	}
	r.ValueDim = inner / r.ValueHeads
	r.Every = m.SizeOr("full_attention_interval", 1<<10, 4)
	if list, ok := m.Ints("attention.recurrent_layers"); ok {
		for _, has := range list {
			r.Layers = append(r.Layers, has != 0)
		}
	}
	m.SkipPredictionLayers(c)
}
