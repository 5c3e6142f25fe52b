package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/mem"
	"sandwich/tuner/measure"
)

// reduceFlags holds the flags of bench allreduce.
type reduceFlags struct {
	sizes   []string
	ranks   []int
	threads int
	chunk   int // KiB
	reps    int
	ceiling bool
}

// reduceSizes lists the default matrices: partial results of decode steps, small batches and
// prefill chunks.
var reduceSizes = []string{"1x768", "1x4096", "8x4096", "64x2048", "512x768", "512x4096"}

func newBenchAllReduce() *cobra.Command {
	var f reduceFlags
	c := &cobra.Command{
		Use:   "allreduce",
		Short: "Measure the all-reduce of the partial results of tensor-parallel ranks",
		Long: `Measure the sum of one partial matrix per rank, which tensor parallelism computes after each attention and feed-forward
block. Every worker first writes its part of its rank's matrix, so that the data is in its own cache. The time runs from
then until all workers may read the sum. Three methods are measured, interleaved:

  shifted   the method of serving: each rank starts at a different chunk, with a flag per chunk; the size sets the chunks
  barrier   one barrier, each worker sums its part, one barrier
  blocking  chunks of --chunk KiB one after the other, each between two barriers

GB/s counts each partial matrix read once and the sum written once. The ceiling is the bandwidth of the L3 that the ranks
share, or of memory if the matrices do not fit it. Data in a worker's own cache may exceed the ceiling.`,
		Example: `  sandwich bench allreduce
  sandwich bench allreduce --sizes 1x4096,512x4096 --ranks 2 --format json
  sandwich bench allreduce --ranks 4,8 --reps 50          # with fewer PUs than ranks, ranks share PUs`,
		Args: flags.ExactArgs(0, ""),
	}
	fs := c.Flags()
	fs.StringSliceVar(&f.sizes, "sizes", reduceSizes, "matrices as ROWSxWIDTH")
	fs.IntSliceVar(&f.ranks, "ranks", nil, "numbers of ranks (default: 2, 4, 8 ... up to the number of PUs, at "+
		"least 2)")
	fs.IntVarP(&f.threads, "threads", "t", 0, "total number of workers (default: one per core, at least one per rank)")
	fs.IntVar(&f.chunk, "chunk", 32, "chunk size of the blocking method in KiB")
	fs.IntVarP(&f.reps, "reps", "r", 200, "samples of each method")
	machine.CeilingFlag(fs, &f.ceiling)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		sizes, err := f.check()
		if err != nil {
			return exit.Usage(err)
		}
		return reduceReport.After(c, *format)(f.run(c.Context(), sizes))
	}
	return c
}

// reduceSize is one matrix.
type reduceSize struct{ rows, width int }

func (f *reduceFlags) check() ([]reduceSize, error) {
	var sizes []reduceSize
	for _, text := range f.sizes {
		m, n, ok := strings.Cut(text, "x")
		rows, err1 := strconv.Atoi(m)
		width, err2 := strconv.Atoi(n)
		if !ok || err1 != nil || err2 != nil || rows < 1 || width < 1 || rows > 1<<16 || width > 1<<20 {
			return nil, fmt.Errorf("--sizes %s: give matrices as ROWSxWIDTH, such as 512x4096, of at most %dx%d",
				show.Clip(text, 40), 1<<16, 1<<20)
		}
		sizes = append(sizes, reduceSize{rows, width})
	}
	for _, r := range f.ranks {
		if r < 1 || r > maxReduceRanks {
			return nil, fmt.Errorf("--ranks %d: give numbers from 1 to %d", r, maxReduceRanks)
		}
	}
	switch {
	case len(sizes) == 0:
		return nil, errors.New("--sizes is empty; give at least one matrix, such as 512x4096")
	case f.threads < 0 || f.threads > 4*maxReduceRanks:
		return nil, fmt.Errorf("--threads %d: give a number from 1 to %d", f.threads, 4*maxReduceRanks)
	case f.chunk < 1 || f.chunk > 1<<20:
		return nil, fmt.Errorf("--chunk %d: give a number of KiB from 1 to %d", f.chunk, 1<<20)
	case f.reps < 1 || f.reps > 1e6:
		return nil, fmt.Errorf("--reps %d: give a number from 1 to 1000000", f.reps)
	}
	return sizes, nil
}

const maxReduceRanks = 256

func (f *reduceFlags) run(ctx context.Context, sizes []reduceSize) ([]measure.AllReduceRow, error) {
	host, err := machine.Live()
	if err != nil {
		return nil, err
	}
	if f.ceiling {
		if err := machine.MeasureCeilings(ctx, host, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	pus := host.CorePUs().Slice()
	ranks := f.ranks
	if len(ranks) == 0 {
		ranks = measure.RanksUpTo(len(pus))
	}
	var rows []measure.AllReduceRow
	step, done := show.StepBar("bench allreduce", len(ranks)*len(sizes))
	defer done()
	for _, r := range ranks {
		for _, size := range sizes {
			more, err := measure.AllReduce(ctx, host, measure.AllReduceOptions{Rows: size.rows, Width: size.width,
				Ranks: r, PUs: measure.ReduceWorkers(pus, r, f.threads), Chunk: f.chunk << 10, Reps: f.reps})
			if errors.Is(err, mem.ErrNoMemory) {
				return nil, exit.Usage(fmt.Errorf("%w: give smaller --sizes or fewer --ranks", err))
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, more...)
			step()
		}
	}
	return rows, nil
}

var reduceReport = show.Report[measure.AllReduceRow]{
	Title: func(r *measure.AllReduceRow) string {
		return r.CPU + ", " + time.Now().UTC().Format("2006-01-02 15:04 UTC")
	},
	Columns: []string{"size", "ranks", "threads", "method", "bytes", "median", "p10", "p90", "GB/s", "of ceiling",
		"ceiling"},
	Numbers: []int{1, 4, 5, 6, 7, 8, 9},
	Cells: func(r *measure.AllReduceRow) []string {
		ofCeiling := ""
		if r.Ceiling > 0 {
			ofCeiling = fmt.Sprintf("%.0f %%", 100*r.Rate/r.Ceiling)
		}
		return []string{fmt.Sprintf("%dx%d", r.Rows, r.Width), strconv.Itoa(r.Ranks), fmt.Sprintf("%d on %s", r.Threads,
			message.Plural(r.PUs, "PU")), r.Way,
			mem.FormatBytes(r.Bytes), profiles.FormatSeconds(r.Median), profiles.FormatSeconds(r.P10),
			profiles.FormatSeconds(r.P90),
			fmt.Sprintf("%.2f", r.Rate/1e9), ofCeiling, r.CeilingOf}
	},
	Header: "way,rows,width,ranks,threads,pus,bytes,median_s,min_s,p10_s,p90_s,reps,bytes_per_second,ceiling_bytes_per_second",
	Line: func(r *measure.AllReduceRow) string {
		return fmt.Sprintf("%s,%d,%d,%d,%d,%d,%d,%.9f,%.9f,%.9f,%.9f,%d,%.0f,%.0f", r.Way, r.Rows, r.Width, r.Ranks,
			r.Threads, r.PUs,
			r.Bytes, r.Median, r.Min, r.P10, r.P90, r.Reps, r.Rate, r.Ceiling)
	},
}
