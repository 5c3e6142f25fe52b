package main

import (
	"fmt"
	"strconv"

	"sandwich/profiles"
	"sandwich/tuner"
)

// attentionRow is one figure of bench attention: one layer. Its JSON is stable.
type attentionRow struct {
	Test    string  `json:"test"` // decode or prefill
	KV      string  `json:"kv"`
	HeadDim int     `json:"head_dim"`
	KVHeads int     `json:"kv_heads"`
	Group   int     `json:"group"` // query heads of a KV head
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
	OfPeak  float64 `json:"of_peak"`
	CPU     string  `json:"cpu"`
}

func newAttentionRow(host *profiles.Profile, o tuner.AttentionOptions, t tuner.AttentionTime) attentionRow {
	sp := summarize(t.Seconds)
	r := attentionRow{Test: "decode", KV: o.KV.String(), HeadDim: o.HeadDim, KVHeads: o.KVHeads, Group: t.Group,
		Context: t.Context, Batch: o.Batch,
		Threads: t.Threads, ISA: o.ISA.String(), Cold: o.Cold > 0, Median: sp.median, Min: sp.min, Max: sp.max,
		Reps:   len(t.Seconds),
		GFLOPS: t.FLOP / sp.median / 1e9, Peak: summarize(t.Peak).median / 1e9, CPU: host.Host.CPUModel}
	r.OfPeak = r.GFLOPS / r.Peak
	if t.Prefill {
		r.Test, r.Batch, r.Cold = "prefill", 1, false
		r.Rate = float64(t.Context) / sp.median
		return r
	}
	r.Rate = float64(o.Batch) / sp.median
	r.GBs, r.Stream = t.Bytes/sp.median/1e9, summarize(t.Stream).median/1e9
	r.OfRead = r.GBs / r.Stream
	return r
}

var attentionReport = report[attentionRow]{
	columns: []string{"test", "heads", "kv", "threads", "median", "min", "max", "tokens/s", "GB/s", "of streaming",
		"GFLOP/s", "of peak"},
	numbers: []int{3, 4, 5, 6, 7, 8, 9, 10, 11},
	cells:   (*attentionRow).cells,
	header:  "test,kv,head_dim,kv_heads,group,context,batch,threads,isa,med_s,min_s,max_s,reps,tokens_per_second,gb_per_second,stream_gb_per_second,gflops,peak_gflops",
	line: func(r *attentionRow) string {
		return fmt.Sprintf("%s,%s,%d,%d,%d,%d,%d,%d,%s,%.9f,%.9f,%.9f,%d,%.1f,%.2f,%.2f,%.2f,%.2f", r.Test, r.KV,
			r.HeadDim, r.KVHeads, r.Group,
			r.Context, r.Batch, r.Threads, r.ISA, r.Median, r.Min, r.Max, r.Reps, r.Rate, r.GBs, r.Stream,
			r.GFLOPS, r.Peak)
	},
}

func (r *attentionRow) cells() []string {
	test := fmt.Sprintf("%s %d", r.Test, r.Context)
	if r.Batch > 1 {
		test += fmt.Sprintf(" x %d", r.Batch)
	}
	bandwidth, ofStream := "", ""
	if r.Stream > 0 {
		bandwidth, ofStream = fmt.Sprintf("%.1f", r.GBs), fmt.Sprintf("%.0f %% of %.1f", 100*r.OfRead, r.Stream)
	}
	return []string{test, fmt.Sprintf("%dx%d of %d", r.KVHeads, r.Group, r.HeadDim), r.KV, strconv.Itoa(r.Threads),
		formatSeconds(r.Median),
		formatSeconds(r.Min), formatSeconds(r.Max), fmt.Sprintf("%.0f", r.Rate), bandwidth, ofStream,
		fmt.Sprintf("%.1f", r.GFLOPS), fmt.Sprintf("%.0f %% of %.0f", 100*r.OfPeak, r.Peak)}
}
