package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/gguf"
	"sandwich/tuner"
)

// gemmFlags are what bench gemm measures.
type gemmFlags struct {
	shapes  []string
	rows    []int
	typ     string
	threads []int
	compute string
	isa     string
	cold    bool
	roof    bool
	least   time.Duration
	peers   string
}

// gemmShapes are the linear layers of the models that ../peers compares with.
var gemmShapes = []string{"768x768", "3072x768", "2048x2048", "5632x2048", "2048x5632", "4096x4096", "14336x4096", "4096x14336"}

func newBenchGEMM() *cobra.Command {
	var f gemmFlags
	c := &cobra.Command{
		Use:   "gemm",
		Short: "Measure single matrix products on the code that serves",
		Long: `Measure C[M,N] = A[M,K] W[N,K]^T on the packed weights, kernels and pinned workers that serving uses, under the
untuned schedules. --cold gives each call other weights, 256 MiB in all, as serving does. --peers joins the figures of
other libraries for the same products, in the columns of --format csv.`,
		Example: `  sandwich bench gemm --threads 1
  sandwich bench gemm --shapes 4096x4096,14336x4096 --m 1,16,128 --type f32 --threads 1 --cold --format csv
  sandwich bench gemm --type q8_0 --m 1,512 --peers peers.csv`,
		Args: exactArgs(0, ""),
	}
	fs := c.Flags()
	fs.StringSliceVar(&f.shapes, "shapes", gemmShapes, "weights as NxK")
	fs.IntSliceVar(&f.rows, "m", []int{1, 16, 128, 512}, "rows M")
	fs.StringVar(&f.typ, "type", "f32", "type of the weights")
	fs.IntSliceVarP(&f.threads, "threads", "t", []int{0}, "worker threads, such as 1,2; 0 takes one on every core")
	fs.StringVar(&f.compute, "compute", "auto", "arithmetic of quantized weights: auto, f32 or int8")
	fs.StringVar(&f.isa, "isa", "", "instruction set of the kernels (default: the widest)")
	fs.BoolVar(&f.cold, "cold", false, "read the weights from memory at each call")
	fs.BoolVar(&f.roof, "roof", true, "measure the roofs first (about 2 s)")
	fs.DurationVar(&f.least, "least", 150*time.Millisecond, "least time for each product")
	fs.StringVar(&f.peers, "peers", "", "CSV of other libraries to compare with")
	format := formatFlag(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(*format, "table", "json", "csv"); err != nil {
			return err
		}
		peers, err := f.check()
		if err != nil {
			return usageError(err)
		}
		rows, err := f.run(c.Context())
		if err != nil {
			return err
		}
		joinPeers(rows, peers)
		return printGEMM(c.OutOrStdout(), rows, *format)
	}
	return c
}

func (f *gemmFlags) check() ([]gemmRow, error) {
	if _, err := f.model(); err != nil {
		return nil, err
	}
	if len(f.rows) == 0 || len(f.threads) == 0 {
		return nil, errors.New("give at least one --m and one --threads")
	}
	for _, m := range f.rows {
		if m < 1 || m > 1<<16 {
			return nil, fmt.Errorf("--m %d: give numbers of rows from 1 to %d", m, 1<<16)
		}
	}
	for _, t := range f.threads {
		if t < 0 {
			return nil, fmt.Errorf("--threads %d: give numbers of at least 1", t)
		}
	}
	if f.least <= 0 || f.least > time.Minute {
		return nil, fmt.Errorf("--least %s: give a time up to 1m", f.least)
	}
	if f.peers == "" {
		return nil, nil
	}
	return readPeers(f.peers)
}

// model is a model that consists of the shapes to measure, each once.
func (f *gemmFlags) model() (plans.ModelShape, error) {
	s := plans.ModelShape{Arch: "bench", Name: "gemm", Hidden: 64, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 64, FFN: 64, Vocab: 64}
	t, err := gguf.ParseType(f.typ)
	if err != nil {
		return s, fmt.Errorf("--type: %w", err)
	}
	block, _ := t.Block()
	for _, text := range f.shapes {
		n, k, ok := strings.Cut(text, "x")
		N, err1 := strconv.Atoi(n)
		K, err2 := strconv.Atoi(k)
		if !ok || err1 != nil || err2 != nil || N < 1 || K < 1 || N > 1<<20 || K > 1<<20 {
			return s, fmt.Errorf("--shapes %s: give weights as NxK, such as 4096x4096, of at most %d a side", clip(text, 40), 1<<20)
		}
		if K%block != 0 {
			return s, fmt.Errorf("--shapes %s: K must be a multiple of %d for %s", text, block, t)
		}
		s.Weights = append(s.Weights, plans.WeightShape{Role: fmt.Sprintf("w%d", len(s.Weights)), N: N, K: K, Type: t.String(), Count: 1})
	}
	return s, nil
}

func (f *gemmFlags) run(ctx context.Context) ([]gemmRow, error) {
	host, err := profiles.Live()
	if err != nil {
		return nil, err
	}
	session := sessionFlags{isa: f.isa, compute: f.compute}
	if err := session.checkISA(host); err != nil {
		return nil, usageError(err)
	}
	if f.roof {
		if err := measureRoofs(ctx, host, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	shape, err := f.model()
	if err != nil {
		return nil, err
	}
	var rows []gemmRow
	for _, t := range f.threads {
		session.threads = t
		plan, err := session.untuned(host, shape)
		if err != nil {
			return nil, usageError(err)
		}
		o := tuner.ProductOptions{Plan: plan, Rows: f.rows, Cold: f.cold, Least: f.least, Seed: 1}
		step, done := countProgress("bench gemm", len(f.rows)*len(plan.Prefill.Tables))
		err = tuner.TimeProducts(ctx, o, func(p tuner.ProductTime) {
			rows = append(rows, newGEMMRow(host, plan, p, f.cold))
			step()
		})
		done()
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
