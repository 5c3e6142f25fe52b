package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles/calibrate"
	"sandwich/profiles/retention"
	"sandwich/roofline"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/tuner/measure/kernels"
)

// gemmFlags holds the flags of bench gemm.
type gemmFlags struct {
	shapes  []string
	rowsOf  []int // M
	types   []string
	threads []int
	compute string
	isa     string
	kernel  string // spec; "" uses the kernel of the default plan
	cold    bool
	round   int // MiB
	ceiling bool
	min     time.Duration
	peers   string
	ours    string
}

// gemmShapes lists the linear layers of the models used for comparisons with other libraries.
var gemmShapes = []string{"768x768", "3072x768", "2048x2048", "5632x2048", "2048x5632", "4096x4096", "14336x4096",
	"4096x14336"}

func newBenchGEMM() *cobra.Command {
	var f gemmFlags
	c := &cobra.Command{
		Use:   "gemm",
		Short: "Measure single matrix products",
		Long: `Measure C[M,N] = A[M,K] W[N,K]^T with the packed weights, kernels and pinned workers of serving, under the schedules of
the default plan. --cold uses different weights in each call, as serving does, 256 MiB in total or --cold-mib. The
ceiling of a cold product is the smaller of the multiply-add peak and the memory bound, which follows from the measured
bandwidth or from the fastest one-row product of the run. "of M=1" is the time divided by that of the same product with
one row.

--isa 1=avx2 gives worker 1 another instruction set. Products are then divided by the measured rate of each worker. They
are timed interleaved with products handed out in chunks, and with each worker computing a separate product.

--peers compares with figures of other libraries for the same products. The file has the columns of --format csv. The
output lists the best peer per product, then each library over all products. If a file lists a product several times,
each line is one round: figures are medians over rounds, and with six rounds or more on both sides the ratio has a 95 %
interval (of the median, by order statistics over the interleaved rounds). --ours reads our figures from such a file, so
that rounds of both sides can be interleaved.`,
		Example: `  sandwich bench gemm --threads 1
  sandwich bench gemm --shapes 4096x4096,14336x4096 --m 1,16,128 --type f32 --threads 1 --cold --format csv
  sandwich bench gemm --type f32,q8_0 --m 1,512 --peers peers.csv
  sandwich bench gemm --type q4_K --m 512 --kernel avx512/int8/q4_k/16x16/ku32/load/amx
  sandwich bench gemm --isa 1=avx2 --type f32,q8_0 --m 512
  sandwich bench gemm --ours rounds.csv --peers rounds.csv --format svg > gemm.svg`,
		Args: flags.ExactArgs(0, ""),
	}
	fs := c.Flags()
	fs.StringSliceVar(&f.shapes, "shapes", gemmShapes, "weights as NxK")
	fs.IntSliceVar(&f.rowsOf, "m", []int{1, 16, 128, 512}, "rows M")
	fs.StringSliceVar(&f.types, "type", []string{"f32"}, "types of the weights")
	fs.IntSliceVarP(&f.threads, "threads", "t", []int{0}, "worker threads, such as 1,2; 0 means one per core")
	fs.StringVar(&f.compute, "compute", "auto", "arithmetic by weight: auto, f32, int8 (quantized weights), "+
		"int8-256 or int8-k (weights in blocks of 256), bf16 or bf16-tile (bf16 weights)")
	fs.StringVar(&f.isa, "isa", "", "instruction set of the kernels (default: the widest); 1=avx2 sets that of "+
		"worker 1")
	fs.StringVar(&f.kernel, "kernel", "", "micro-kernel to measure, as plans spell it (default: the choice of the "+
		"default plan)")
	fs.BoolVar(&f.cold, "cold", false, "read the weights from memory at each call")
	fs.IntVar(&f.round, "cold-mib", 256, "MiB of weights that cold calls cycle through; should exceed the last-level "+
		"cache")
	machine.CeilingFlag(fs, &f.ceiling)
	flags.Duration(fs, &f.min, "least", 150*time.Millisecond, "minimum time per product")
	fs.StringVar(&f.peers, "peers", "", "CSV file with figures of other libraries")
	fs.StringVar(&f.ours, "ours", "", "CSV file with our figures of earlier runs; nothing is measured")
	format := flags.Format(c, "table", "json", "csv", "svg")
	c.RunE = func(c *cobra.Command, _ []string) error {
		peers, ours, err := f.check()
		if err != nil {
			return exit.Usage(err)
		}
		if heterogeneous, err := f.heterogeneous(*format); err != nil || heterogeneous {
			if err != nil {
				return err
			}
			return f.printHeterogeneous(c.Context(), c.OutOrStdout(), *format)
		}
		rows, ceilings, err := f.rows(c.Context(), ours)
		if err != nil {
			return err
		}
		return printGEMM(c.OutOrStdout(), rows, peers, ceilings, *format)
	}
	return c
}

// check validates the flags and reads the files of --peers and --ours.
func (f *gemmFlags) check() (peers, ours []kernels.ProductRow, err error) {
	if err := f.checkNumbers(); err != nil {
		return nil, nil, err
	}
	if f.peers != "" {
		if peers, err = readProducts("--peers", f.peers); err != nil {
			return nil, nil, err
		}
		if peers = slices.DeleteFunc(peers, func(r kernels.ProductRow) bool { return r.Ours() }); len(peers) == 0 {
			return nil, nil, fmt.Errorf("--peers %s has no line of another library; its columns must be %s",
				show.Clip(f.peers, 200), kernels.ProductHeader)
		}
	}
	if f.ours != "" {
		if ours, err = readProducts("--ours", f.ours); err != nil {
			return nil, nil, err
		}
		if ours = slices.DeleteFunc(ours, func(r kernels.ProductRow) bool { return !r.Ours() }); len(ours) == 0 {
			return nil, nil, fmt.Errorf("--ours %s has no line of sandwich; write it with bench gemm --format csv",
				show.Clip(f.ours, 200))
		}
	}
	return peers, ours, nil
}

// readProducts reads a CSV file of measured products. flag names the flag in errors.
func readProducts(flag, path string) ([]kernels.ProductRow, error) {
	f, err := retention.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer f.Close()
	return kernels.ReadProducts(flag+" "+show.Clip(path, 200), f)
}

func (f *gemmFlags) checkNumbers() error {
	if len(f.types) == 0 || len(f.shapes) == 0 {
		return errors.New("--type or --shapes is empty; give at least one value of each")
	}
	for _, t := range f.types {
		if _, err := f.model(t); err != nil {
			return err
		}
	}
	if len(f.rowsOf) == 0 || len(f.threads) == 0 {
		return errors.New("--m or --threads is empty; give at least one value of each")
	}
	for _, m := range f.rowsOf {
		if m < 1 || m > 1<<16 {
			return fmt.Errorf("--m %d is out of range; give numbers of rows from 1 to %d", m, 1<<16)
		}
	}
	for _, t := range f.threads {
		if t < 0 {
			return fmt.Errorf("--threads %d is negative; give 0 for one per core, or numbers from 1", t)
		}
	}
	if f.kernel != "" {
		var k microkernel.Spec
		if err := k.UnmarshalText([]byte(f.kernel)); err != nil {
			return fmt.Errorf("--kernel: %w", err)
		}
		if f.compute == "auto" {
			f.compute = k.Compute.String()
		}
	}
	if f.round < 64 || f.round > 1<<16 {
		return fmt.Errorf("--cold-mib %d is out of range; give a number from 64 to %d", f.round, 1<<16)
	}
	if f.min <= 0 || f.min > time.Minute {
		return fmt.Errorf("--least %s is out of range; give a time above 0, at most 1m", f.min)
	}
	return nil
}

// benchShape returns a model shape with the given weights, from which benchmarks derive a default
// plan.
func benchShape(name string, weights ...plans.WeightShape) plans.ModelShape {
	return plans.ModelShape{Arch: "bench", Name: name, Hidden: 64, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 64,
		FFN: 64, Vocab: 64, Weights: weights}
}

// model returns a model that consists of the shapes to measure, each once, in one weight type.
func (f *gemmFlags) model(typ string) (plans.ModelShape, error) {
	s := benchShape("gemm")
	for i, text := range f.shapes {
		key, err := weightKey("--shapes", text, typ)
		if err != nil {
			return s, err
		}
		s.Weights = append(s.Weights, plans.WeightShape{Role: fmt.Sprintf("w%d", i), N: key.N, K: key.K,
			Type: key.Type, Count: 1})
	}
	return s, nil
}

// weightKey reads a weight from the flag that gives its shape as NxK and from --type.
func weightKey(flag, shape, typ string) (plans.WeightKey, error) {
	t, err := gguf.ParseType(typ)
	if err != nil {
		return plans.WeightKey{}, fmt.Errorf("--type: %w", err)
	}
	n, k, ok := strings.Cut(shape, "x")
	N, err1 := strconv.Atoi(n)
	K, err2 := strconv.Atoi(k)
	if !ok || err1 != nil || err2 != nil || N < 1 || K < 1 || N > 1<<20 || K > 1<<20 {
		return plans.WeightKey{}, fmt.Errorf("%s %q is not a weight; give NxK, such as 4096x4096, with N and K "+
			"up to %d", flag, show.Clip(shape, 40), 1<<20)
	}
	if block, _ := t.Block(); K%block != 0 {
		return plans.WeightKey{}, fmt.Errorf("%s %s: K must be a multiple of %d for %s", flag, shape, block, t)
	}
	return plans.WeightKey{N: N, K: K, Type: t.String()}, nil
}

// rows returns the measured products, or those in read if it is not nil, and the ceilings of this
// machine.
func (f *gemmFlags) rows(ctx context.Context, read []kernels.ProductRow) ([]kernels.ProductRow,
	kernels.ProductCeilings, error) {
	host, err := machine.Live()
	if err != nil {
		return nil, kernels.ProductCeilings{}, err
	}
	session := modelflags.Flags{ISA: f.isa, Compute: f.compute}
	if err := session.CheckOn(host); err != nil {
		return nil, kernels.ProductCeilings{}, exit.Usage(err)
	}
	if f.ceiling {
		if err := machine.MeasureCeilings(ctx, host, calibrate.Options{}); err != nil {
			return nil, kernels.ProductCeilings{}, err
		}
	}
	ceilings := kernels.NewProductCeilings(host, f.isa)
	if f.ceiling && read == nil {
		if err := f.measurePorts(ctx, &ceilings); err != nil {
			return nil, ceilings, err
		}
	}
	if read != nil {
		ceilings.Fill(read)
		return read, ceilings, nil
	}
	var rows []kernels.ProductRow
	for _, typ := range f.types {
		for _, t := range f.threads {
			session.Threads = t
			if rows, err = f.measure(ctx, rows, ceilings, session, typ); err != nil {
				return nil, ceilings, err
			}
		}
	}
	ceilings.Fill(rows)
	return rows, ceilings, nil
}

// measurePorts sets the port rates of the instruction set of the kernels in ceilings.
func (f *gemmFlags) measurePorts(ctx context.Context, ceilings *kernels.ProductCeilings) (err error) {
	isa := ceilings.Host.Features().Best()
	if f.isa != "" {
		if isa, err = microkernel.ParseISA(f.isa); err != nil {
			return err
		}
	}
	figures, err := calibrate.Ports(ctx, ceilings.Host, isa)
	ceilings.Ports = roofline.PortsOf(figures, isa)
	return err
}

// measure appends the products of one weight type on one number of threads.
func (f *gemmFlags) measure(ctx context.Context, rows []kernels.ProductRow, ceilings kernels.ProductCeilings,
	session modelflags.Flags, typ string) ([]kernels.ProductRow, error) {
	shape, err := f.model(typ)
	if err != nil {
		return nil, err
	}
	plan, err := session.Untuned(ceilings.Host, shape)
	if err != nil {
		return nil, err
	}
	if f.kernel != "" {
		kernel, err := microkernel.ParseSpec(f.kernel)
		if err == nil {
			err = heuristic.UseKernel(plan, ceilings.Host, kernel)
		}
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--kernel: %w", err))
		}
	}
	peer := kernels.OurName
	if len(f.types) > 1 {
		peer += "/" + typ
	}
	o := kernels.ProductOptions{Plan: plan, Rows: f.rowsOf, Cold: f.cold, Round: f.round << 20, Least: f.min, Seed: 1}
	step, done := show.StepBar("bench gemm", len(f.rowsOf)*len(plan.Prefill.Tables))
	defer done()
	err = kernels.TimeProducts(ctx, o, func(p kernels.ProductTime) {
		rows = append(rows, p.Row(peer, f.cold))
		step()
	})
	if errors.Is(err, mem.ErrNoMemory) {
		err = exit.Usage(fmt.Errorf("%w; give smaller --shapes, fewer rows or a smaller --cold-mib", err))
	}
	return rows, err
}
