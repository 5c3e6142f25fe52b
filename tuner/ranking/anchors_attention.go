package ranking

import (
	"context"
	"fmt"

	"sandwich/microkernel"
	"sandwich/roofline"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/search"
)

// The anchors of attention: a decode step after anchorDepth positions is bound by reading, a long
// prompt by multiplying.
const (
	anchorDepth  = 4096
	anchorPrompt = 512
)

// attention measures the anchors of a model's attention, under the type "".
func (c *calibration) attention(ctx context.Context, o Options) error {
	isa, err := microkernel.ParseISA(c.plan.Widest())
	if err != nil {
		return err
	}
	s := c.plan.Model
	layout := microkernel.KVLayout{HeadDim: s.HeadDim, Elem: c.plan.KV}
	if s.KVHeads == 0 || s.Heads%s.KVHeads != 0 || layout.Check() != nil {
		return nil // its layers have different heads
	}
	ao := kernels.AttentionOptions{PUs: c.plan.Prefill.PUs, ISA: isa, KV: c.plan.KV, Dot: c.plan.Attention,
		HeadDim: s.HeadDim, KVHeads: s.KVHeads, Groups: []int{s.Heads / s.KVHeads}, Decode: []int{anchorDepth},
		Prefill: []int{anchorPrompt}, Batch: 1, Chunk: anchorPrompt, Least: c.min, Seed: 1,
		Cold: int(min(anchorRound, kernels.ColdBytes(o.Profile, c.plan.Prefill.PUs)))}
	decode, prefill, err := attentionAnchors(ctx, ao)
	if err != nil {
		return err
	}
	pace := c.predictor.Pace(microkernel.ComputeF32.String(), c.plan.Prefill.PUs)
	near, err := roofline.FitEfficiency(pace, decode, roofline.Anchor{}, prefill)
	if err != nil {
		return nil
	}
	if ao.PUs, ao.Prefill = c.one(), nil; !ao.PUs.IsEmpty() {
		var alone roofline.Anchor
		if alone, _, err = attentionAnchors(ctx, ao); err == nil {
			near.Alone = c.reachAlone(microkernel.ComputeF32.String(), near, alone)
		}
	}
	c.out.Types[""] = near
	c.out.Measured = append(c.out.Measured, fmt.Sprintf("attention reaches %.0f %% of what PUs %s read%s after %d "+
		"positions and %.0f %% of their f32 peak in a prompt of %d", 100*near.Read, c.pus, c.sayAlone(near),
		anchorDepth, 100*near.Peak, anchorPrompt))
	return err
}

// attentionAnchors times decode and prefill attention with the given options.
func attentionAnchors(ctx context.Context, o kernels.AttentionOptions) (decode, prefill roofline.Anchor, err error) {
	err = kernels.TimeAttention(ctx, o, func(t kernels.AttentionTime) {
		a := roofline.Anchor{Step: roofline.Step{Work: roofline.Work{FLOP: t.FLOP, Bytes: t.Bytes}},
			Seconds: search.Sample{Seconds: t.Seconds}.Fast()}
		if t.Prefill {
			prefill = a
			return
		}
		decode = a
	})
	return decode, prefill, err
}
