package kernels

import (
	"sandwich/profiles"
	"sandwich/tuner/measure/spread"
)

// AttentionRow is the attention of one layer with its ceilings. Its JSON is stable.
type AttentionRow struct {
	Test    string  `json:"test"` // decode or prefill
	KV      string  `json:"kv"`
	By      string  `json:"by"` // dot product
	HeadDim int     `json:"head_dim"`
	KVHeads int     `json:"kv_heads"`
	Group   int     `json:"group"` // query heads per KV head
	Context int     `json:"context"`
	Batch   int     `json:"batch"`
	Threads int     `json:"threads"`
	ISA     string  `json:"isa"`
	Cold    bool    `json:"cold"`
	Median  float64 `json:"med_s"`
	Min     float64 `json:"min_s"`
	Max     float64 `json:"max_s"`
	Reps    int     `json:"reps"`
	Rate    float64 `json:"tokens_per_second"` // of this layer alone, at the median
	GBs     float64 `json:"gb_per_second,omitempty"`
	Stream  float64 `json:"stream_gb_per_second,omitempty"`
	OfRead  float64 `json:"of_stream,omitempty"`
	GFLOPS  float64 `json:"gflops"`
	Peak    float64 `json:"peak_gflops"`
	OfPeak  float64 `json:"of_peak"` // of the multiply-adds of its arithmetic; tiles are compared with float32
	CPU     string  `json:"cpu"`
}

// Row returns the time with the ceilings that were measured interleaved with it.
func (t *AttentionTime) Row(host *profiles.Profile, o AttentionOptions) AttentionRow {
	sp := spread.Summarize(t.Seconds)
	r := AttentionRow{Test: "decode", KV: o.KV.String(), By: o.Dot.String(), HeadDim: o.HeadDim, KVHeads: o.KVHeads,
		Group:   t.Group,
		Context: t.Context, Batch: o.Batch,
		Threads: t.Threads, ISA: o.ISA.String(), Cold: o.Cold > 0, Median: sp.Median, Min: sp.Min, Max: sp.Max,
		Reps:   len(t.Seconds),
		GFLOPS: t.FLOP / sp.Median / 1e9, Peak: spread.Summarize(t.Peak).Median / 1e9, CPU: host.Host.CPUModel}
	r.OfPeak = r.GFLOPS / r.Peak
	if t.Prefill {
		r.Test, r.Batch, r.Cold = "prefill", 1, false
		r.Rate = float64(t.Context) / sp.Median
		return r
	}
	r.Rate = float64(o.Batch) / sp.Median
	r.GBs, r.Stream = t.Bytes/sp.Median/1e9, spread.Summarize(t.Stream).Median/1e9
	r.OfRead = r.GBs / r.Stream
	return r
}
