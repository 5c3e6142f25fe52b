package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/kernels"
)

// attentionFlags holds the flags of bench attention.
type attentionFlags struct {
	model   string
	dims    []int
	groups  []int
	kvHeads int
	kv      []string
	by      []string
	decode  []int
	prefill []int
	batch   int
	chunk   int
	threads []int
	isa     string
	hot     bool
	min     time.Duration
}

func newBenchAttention() *cobra.Command {
	var f attentionFlags
	c := &cobra.Command{
		Use:   "attention",
		Short: "Measure attention: decode relative to streaming, prefill relative to multiply-adds",
		Long: `Measure the attention of one layer with the paged cache, kernels and pinned workers of serving. Each decode step reads
different blocks, four times the last-level cache in total, so that keys and values come from memory as they do in
serving; --hot reads the same blocks again. Prefill is a whole prompt, chunk by chunk, from an empty cache.

Both ceilings are measured on the same workers, interleaved with the calls: the bandwidth of streaming the cache's memory,
and the rate of multiply-adds on registers in the arithmetic of the attention (for tdpbf16: in float32). A group is the
query heads that share a KV head.`,
		Example: `  sandwich bench attention
  sandwich bench attention --model llama-3.1-8b --kv f16,q8_0 --decode 4096,32768 --prefill 0
  sandwich bench attention --head-dim 128 --group 4 --threads 1,2 --format csv
  sandwich bench attention --isa 1=avx2 --kv f16 --decode 4096 --prefill 512`,
		Args: flags.ExactArgs(0, ""),
	}
	fs := c.Flags()
	modelref.Flag(c, &f.model, "model", "m", "", "take heads from a GGUF file, a pulled model, a config.json or a "+
		"preset")
	fs.IntSliceVar(&f.dims, "head-dim", []int{64, 128}, "elements of a head")
	fs.IntSliceVar(&f.groups, "group", []int{1, 2, 4, 8}, "query heads of each KV head")
	fs.IntVar(&f.kvHeads, "kv-heads", 4, "KV heads")
	fs.StringSliceVar(&f.kv, "kv", []string{"f16"}, "types of the KV cache: f16, f32, q8_0")
	fs.StringSliceVar(&f.by, "by", []string{"auto"}, "dot products of attention: f32, dpbf16, tdpbf16, dpbusd (with "+
		"--kv q8_0), or auto, the choice of the default plan of a quantized model")
	fs.IntSliceVar(&f.decode, "decode", []int{512, 2048, 4096, 8192}, "context lengths of decode steps; 0 measures "+
		"none")
	fs.IntSliceVar(&f.prefill, "prefill", []int{512, 2048, 8192}, "prompt lengths; 0 measures none")
	fs.IntVar(&f.batch, "batch", 1, "sequences of a decode step")
	fs.IntVar(&f.chunk, "chunk", 512, "tokens of a prefill chunk")
	fs.IntSliceVarP(&f.threads, "threads", "t", []int{0}, "worker threads, such as 1,2; 0 means one per core")
	fs.StringVar(&f.isa, "isa", "", "instruction set of the kernels (default: the widest); 1=avx2 sets it for worker "+
		"1 and compares the rate of all workers on one attention with the sum of their rates on separate ones")
	fs.BoolVar(&f.hot, "hot", false, "read the same blocks in every decode step")
	flags.Duration(fs, &f.min, "least", 300*time.Millisecond, "minimum time per figure")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(c.Flags().Changed); err != nil {
			return exit.Usage(err)
		}
		isas, err := plans.ParseWorkerISAs(f.isa)
		if err != nil {
			return exit.Usage(fmt.Errorf("--isa: %w", err))
		}
		if len(isas.Of) > 0 {
			return heterogeneousAttentionReport.After(c, *format)(f.runHeterogeneous(c.Context()))
		}
		return attentionReport.After(c, *format)(f.run(c.Context()))
	}
	return c
}

const longestContext = 1 << 20

// check rejects flags that cannot be measured and drops zeros from the lists of lengths.
func (f *attentionFlags) check(given func(flag string) bool) error {
	if f.model != "" {
		for _, flag := range []string{"head-dim", "group", "kv-heads"} {
			if given(flag) {
				return fmt.Errorf("--%s and --model both set the heads; give one of them", flag)
			}
		}
		if err := f.readModel(); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		flag     string
		values   []int
		min, top int
	}{{"--head-dim", f.dims, 1, 1024}, {"--group", f.groups, 1, 256}, {"--kv-heads", []int{f.kvHeads}, 1, 1024},
		{"--decode", f.decode, 0, longestContext},
		{"--prefill", f.prefill, 0, longestContext}, {"--batch", []int{f.batch}, 1, modelflags.MaxParallel},
		{"--chunk", []int{f.chunk}, 1, 1 << 16}, {"--threads", f.threads, 0, profiles.MaxPU}} {
		if len(list.values) == 0 {
			return fmt.Errorf("%s is empty; give a number from %d to %d", list.flag, list.min, list.top)
		}
		for _, v := range list.values {
			if v < list.min || v > list.top {
				return fmt.Errorf("%s %d is out of range; give numbers from %d to %d", list.flag, v, list.min,
					list.top)
			}
		}
	}
	zero := func(n int) bool { return n == 0 }
	f.decode, f.prefill = slices.DeleteFunc(f.decode, zero), slices.DeleteFunc(f.prefill, zero)
	if len(f.decode)+len(f.prefill) == 0 {
		return errors.New("--decode and --prefill select no test; give one of them a length above 0")
	}
	if f.min <= 0 || f.min > time.Minute {
		return fmt.Errorf("--least %s is out of range; give a time above 0, at most 1m", f.min)
	}
	if len(f.by) == 0 {
		return errors.New("--by is empty; give auto, f32, dpbf16, tdpbf16 or dpbusd")
	}
	for _, name := range f.by {
		if _, err := microkernel.ParseAttentionDot(name); err != nil && name != "auto" {
			return fmt.Errorf("--by: %w", err)
		}
	}
	if len(f.kv) == 0 {
		return errors.New("--kv is empty; give f16, f32 or q8_0")
	}
	for _, name := range f.kv {
		kv, err := microkernel.ParseKVType(name)
		if err != nil {
			return fmt.Errorf("--kv: %w", err)
		}
		for _, dim := range f.dims {
			if err := (microkernel.KVLayout{HeadDim: dim, Elem: kv}).Check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *attentionFlags) readModel() error {
	s, err := session.OpenSubject(f.model, "f16")
	if err != nil {
		return err
	}
	defer s.Close()
	f.dims, f.kvHeads, f.groups = []int{s.Shape.HeadDim}, s.Shape.KVHeads, []int{s.Shape.Heads / s.Shape.KVHeads}
	return nil
}

func (f *attentionFlags) run(ctx context.Context) (rows []kernels.AttentionRow, err error) {
	err = f.each(func(host *profiles.Profile, _ *plans.Plan, o kernels.AttentionOptions, step func()) error {
		return kernels.TimeAttention(ctx, o, func(t kernels.AttentionTime) {
			rows = append(rows, t.Row(host, o))
			step()
		})
	})
	return rows, err
}

// runHeterogeneous measures workers of several kinds.
func (f *attentionFlags) runHeterogeneous(ctx context.Context) (rows []kernels.HeterogeneousAttentionRow, err error) {
	err = f.each(func(_ *profiles.Profile, plan *plans.Plan, o kernels.AttentionOptions, step func()) error {
		return kernels.TimeHeterogeneousAttention(ctx, plan, o, func(r kernels.HeterogeneousAttentionRow) {
			rows = append(rows, r)
			step()
		})
	})
	return rows, err
}

// each calls fn for each combination of thread count, KV cache type, dot product and head
// dimension.
func (f *attentionFlags) each(fn func(host *profiles.Profile, plan *plans.Plan, o kernels.AttentionOptions,
	step func()) error) error {
	host, err := machine.Live()
	if err != nil {
		return err
	}
	// Only the workers and the dot product of the plan of this shape are used.
	shape := benchShape("attention", plans.WeightShape{Role: "q", N: 64, K: 64, Type: "q8_0", Count: 1})
	figures := len(f.threads) * len(f.dims) * len(f.kv) * len(f.groups) * len(f.by) * (len(f.decode) + len(f.prefill))
	step, done := show.StepBar("bench attention", figures)
	defer done()
	session := modelflags.Flags{ISA: f.isa}
	for _, session.Threads = range f.threads {
		for _, session.KV = range f.kv {
			for _, session.Attention = range f.by {
				if err := session.CheckISA(host); err != nil {
					return exit.Usage(err)
				}
				plan, err := session.Untuned(host, shape)
				if err != nil {
					return err
				}
				for _, dim := range f.dims {
					err := fn(host, plan, f.option(host, plan, dim), step)
					if errors.Is(err, mem.ErrNoMemory) {
						return exit.Usage(fmt.Errorf("%w; give shorter contexts, fewer --kv-heads or a smaller "+
							"--batch", err))
					}
					if err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (f *attentionFlags) option(host *profiles.Profile, plan *plans.Plan, dim int) kernels.AttentionOptions {
	o := kernels.AttentionOptions{PUs: plan.Decode.PUs, ISA: f.mainISA(host), Dot: plan.Attention, KV: plan.KV,
		HeadDim: dim, KVHeads: f.kvHeads, Groups: f.groups, Decode: f.decode, Prefill: f.prefill,
		Batch: f.batch, Chunk: f.chunk, Least: f.min, Seed: 1}
	if !f.hot {
		o.Cold = int(kernels.ColdBytes(host, plan.Decode.PUs))
	}
	return o
}

// mainISA returns the instruction set of the workers that --isa does not list individually.
func (f *attentionFlags) mainISA(host *profiles.Profile) microkernel.ISA {
	if isas, err := plans.ParseWorkerISAs(f.isa); err == nil && isas.All != "" {
		if isa, err := microkernel.ParseISA(isas.All); err == nil { // always: check parsed it
			return isa
		}
	}
	return host.Features().Best()
}
