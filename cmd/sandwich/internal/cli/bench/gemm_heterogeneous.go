package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/mem"
	"sandwich/tuner/measure/kernels"
)

// heterogeneousReport prints products on heterogeneous workers.
var heterogeneousReport = show.Report[kernels.HeterogeneousRow]{
	Columns: []string{"weight NxK", "type", "compute", "M", "workers", "GFLOP/s", "each alone", "of their sum", "95 %",
		"in chunks", "each", "over chunks", "95 %"},
	Numbers: []int{3, 5, 7, 9, 10, 11},
	Cells: func(r *kernels.HeterogeneousRow) []string {
		var alone []string
		for _, rate := range r.Alone {
			alone = append(alone, fmt.Sprintf("%.1f", rate))
		}
		return []string{fmt.Sprintf("%dx%d", r.N, r.K), r.Type, r.Compute, fmt.Sprint(r.M), strings.Join(r.ISAs, ", "),
			fmt.Sprintf("%.1f", r.Divided), strings.Join(alone, " + "), fmt.Sprintf("%.1f %%", 100*r.Share),
			fmt.Sprintf("%.1f to %.1f", 100*r.ShareLow, 100*r.ShareHigh), fmt.Sprintf("%.1f", r.Chunks),
			fmt.Sprintf("%.3g", r.Tasks), fmt.Sprintf("%.3f", r.Over), fmt.Sprintf("%.3f to %.3f", r.OverLow,
				r.OverHigh)}
	},
	Header: "N,K,M,type,compute,isas,gflops,chunks_gflops,alone_gflops,chunks_each,rounds,of_sum,of_sum_low,of_sum_high," +
		"over_chunks,over_chunks_low,over_chunks_high",
	Line: func(r *kernels.HeterogeneousRow) string {
		alone := strings.ReplaceAll(strings.Trim(fmt.Sprintf("%.2f", r.Alone), "[]"), " ", "+")
		return fmt.Sprintf("%d,%d,%d,%s,%s,%s,%.2f,%.2f,%s,%.2f,%d,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f", r.N, r.K, r.M,
			r.Type,
			r.Compute, strings.Join(r.ISAs, "+"), r.Divided, r.Chunks, alone, r.Tasks, r.Rounds, r.Share, r.ShareLow,
			r.ShareHigh, r.Over, r.OverLow, r.OverHigh)
	},
}

// heterogeneous reports whether the workers differ in kind, and returns an error for flags that
// cannot be combined with such workers.
func (f *gemmFlags) heterogeneous(format string) (bool, error) {
	isas, err := plans.ParseWorkerISAs(f.isa)
	if err != nil {
		return false, exit.Usage(fmt.Errorf("--isa: %w", err))
	}
	if len(isas.Of) == 0 && !exec.Throttled() {
		return false, nil
	}
	switch {
	case f.peers != "" || f.ours != "":
		return true, exit.Usage(errors.New("--peers and --ours cannot be combined with --isa for single workers; " +
			"leave one of them out"))
	case f.kernel != "":
		return true, exit.Usage(errors.New("--kernel cannot be combined with --isa for single workers; leave one of " +
			"them out"))
	case format == "svg":
		return true,
			exit.Usage(errors.New("--format svg cannot be combined with --isa for single workers; give table, json " +
				"or csv"))
	}
	return true, nil
}

// printHeterogeneous measures products on heterogeneous workers.
func (f *gemmFlags) printHeterogeneous(ctx context.Context, w io.Writer, format string) error {
	host, err := machine.Live()
	if err != nil {
		return err
	}
	session := modelflags.Flags{ISA: f.isa, Compute: f.compute}
	var rows []kernels.HeterogeneousRow
	for _, typ := range f.types {
		for _, t := range f.threads {
			session.Threads = t
			if err := session.CheckOn(host); err != nil {
				return exit.Usage(err)
			}
			shape, err := f.model(typ)
			if err != nil {
				return err
			}
			plan, err := session.Untuned(host, shape)
			if err != nil {
				return err
			}
			o := kernels.ProductOptions{Plan: plan, Rows: f.rowsOf, Cold: f.cold, Round: f.round << 20, Least: f.min,
				Seed: 1}
			step, done := show.StepBar("bench gemm", len(f.rowsOf)*len(plan.Weights))
			err = kernels.TimeHeterogeneous(ctx, o, func(r kernels.HeterogeneousRow) {
				rows = append(rows, r)
				step()
			})
			done()
			if errors.Is(err, mem.ErrNoMemory) {
				return exit.Usage(fmt.Errorf("%w; give smaller --shapes, fewer rows or a smaller --cold-mib", err))
			}
			if err != nil {
				return err
			}
		}
	}
	return heterogeneousReport.Print(w, rows, format)
}
