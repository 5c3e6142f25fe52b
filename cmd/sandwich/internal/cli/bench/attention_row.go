package bench

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/tuner/measure/kernels"
)

var attentionReport = show.Report[kernels.AttentionRow]{
	Columns: []string{"test", "heads", "kv", "dot", "threads", "median", "min", "max", "tokens/s", "GB/s",
		"of streaming",
		"GFLOP/s", "of peak"},
	Numbers: []int{4, 5, 6, 7, 8, 9, 10, 11, 12},
	Cells:   attentionCells,
	Header:  "test,kv,by,head_dim,kv_heads,group,context,batch,threads,isa,med_s,min_s,max_s,reps,tokens_per_second,gb_per_second,stream_gb_per_second,gflops,peak_gflops",
	Line: func(r *kernels.AttentionRow) string {
		return fmt.Sprintf("%s,%s,%s,%d,%d,%d,%d,%d,%d,%s,%.9f,%.9f,%.9f,%d,%.1f,%.2f,%.2f,%.2f,%.2f", r.Test, r.KV,
			r.By,
			r.HeadDim, r.KVHeads, r.Group,
			r.Context, r.Batch, r.Threads, r.ISA, r.Median, r.Min, r.Max, r.Reps, r.Rate, r.GBs, r.Stream,
			r.GFLOPS, r.Peak)
	},
}

func attentionCells(r *kernels.AttentionRow) []string {
	test := fmt.Sprintf("%s %d", r.Test, r.Context)
	if r.Batch > 1 {
		test += fmt.Sprintf(" x %d", r.Batch)
	}
	bandwidth, ofStream := "", ""
	if r.Stream > 0 {
		bandwidth, ofStream = fmt.Sprintf("%.1f", r.GBs), fmt.Sprintf("%.0f %% of %.1f", 100*r.OfRead, r.Stream)
	}
	return []string{test, fmt.Sprintf("%dx%d of %d", r.KVHeads, r.Group, r.HeadDim), r.KV, r.By,
		strconv.Itoa(r.Threads),
		profiles.FormatSeconds(r.Median),
		profiles.FormatSeconds(r.Min), profiles.FormatSeconds(r.Max), fmt.Sprintf("%.0f", r.Rate), bandwidth, ofStream,
		fmt.Sprintf("%.1f", r.GFLOPS), fmt.Sprintf("%.0f %% of %.0f", 100*r.OfPeak, r.Peak)}
}

// heterogeneousAttentionReport prints attention on heterogeneous workers.
var heterogeneousAttentionReport = show.Report[kernels.HeterogeneousAttentionRow]{
	Columns: []string{"test", "heads", "kv", "dot", "workers", "median", "each alone in that time", "of their sum",
		"95 %"},
	Numbers: []int{5, 6, 7, 8},
	Cells: func(r *kernels.HeterogeneousAttentionRow) []string {
		test := fmt.Sprintf("%s %d", r.Test, r.Context)
		if r.Test == "decode" && r.Batch > 1 {
			test += fmt.Sprintf(" x %d", r.Batch)
		}
		var alone []string
		for _, part := range r.Alone {
			alone = append(alone, fmt.Sprintf("%.2f", part))
		}
		return []string{test, fmt.Sprintf("%dx%d of %d", r.KVHeads, r.Group, r.HeadDim), r.KV, r.By,
			strings.Join(r.ISAs, ", "), profiles.FormatSeconds(r.Seconds), strings.Join(alone, " + "),
			fmt.Sprintf("%.1f %%", 100*r.Share), fmt.Sprintf("%.1f to %.1f", 100*r.ShareLow, 100*r.ShareHigh)}
	},
	Header: "test,kv,by,head_dim,kv_heads,group,context,batch,isas,med_s,alone,rounds,of_sum,of_sum_low,of_sum_high",
	Line: func(r *kernels.HeterogeneousAttentionRow) string {
		alone := strings.ReplaceAll(strings.Trim(fmt.Sprintf("%.3f", r.Alone), "[]"), " ", "+")
		return fmt.Sprintf("%s,%s,%s,%d,%d,%d,%d,%d,%s,%.9f,%s,%d,%.4f,%.4f,%.4f", r.Test, r.KV, r.By, r.HeadDim,
			r.KVHeads, r.Group, r.Context, r.Batch, strings.Join(r.ISAs, "+"), r.Seconds, alone, r.Rounds, r.Share,
			r.ShareLow, r.ShareHigh)
	},
}
