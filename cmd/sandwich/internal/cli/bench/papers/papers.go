// Package papers has the verb bench papers, which runs the evaluation of a paper in the engine.
package papers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/roofline"
	"sandwich/runtime/engine"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/load"
)

// paperFlags are the flags of bench papers.
type paperFlags struct {
	session modelflags.Flags
	sizes   modelflags.Service
	params  string
	figures []string
	models  []string // small, large
	minutes float64
	seeds   int
	seed    uint64
}

// Values of --models.
const (
	smallModel = "small"
	largeModel = "large"
)

// New returns the verb bench papers.
func New() *cobra.Command {
	var f paperFlags
	c := &cobra.Command{
		Use:   "papers",
		Short: "Run Agent.xpu's figures 8 to 10 in the engine with simulated devices, next to the paper's numbers",
		Long: `Run the evaluation of Agent.xpu (section 6) in the engine of this process, and print what figures 8 to 10 show next to the
numbers that the paper's text gives:

  figure 8   proactive requests of one set: time per token by rate, throughput at the highest rate
  figure 9   reactive and proactive requests: latencies by class
  figure 10  the latencies at the middle reactive rate, divided into waiting, prefill and decode

The baseline runs both phases on one device without classes, as OpenVINO does on the iGPU. The other arm runs prefill on
the device, as Agent.xpu does on the NPU, and decode on the cores, with two classes. Engine, scheduler and copies are
real; the devices wait as long as those of the paper would take, by the figures of the group agentxpu of --params.

A small model (--model) takes the place of the paper's. A decode step of one sequence on the cores stands for one of the
paper's model on the iGPU; all other times and the times between arrivals are divided by the same factor, and results are
multiplied by it. The larger the factor, the more the overheads of the engine weigh; a model with a factor of 5 to 10 is a
good choice. Run it on a machine that does nothing else.`,
		Example: `  sandwich bench papers --minutes 1 --figures 10 --models small
  sandwich bench papers --model llama-160m-q8_0.gguf --seeds 3 --format csv`,
		Args: flags.ExactArgs(0, ""),
	}
	f.session.Add(c)
	f.sizes.AddShares(c.Flags())
	fs := c.Flags()
	fs.StringVar(&f.params, "params", "docs/papers.params.yaml", "file with the parameters of the papers")
	fs.StringSliceVar(&f.figures, "figures", []string{"8", "9", "10"}, "figures to run")
	fs.StringSliceVar(&f.models, "models", []string{smallModel, largeModel}, "models of the paper: small (3B), large "+
		"(8B)")
	fs.Float64Var(&f.minutes, "minutes", 0, "length of a trace in the paper's time (default: as in the paper, 15)")
	fs.IntVar(&f.seeds, "seeds", 1, "traces of each load")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the first trace")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := exit.Usage(f.check()); err != nil {
			return err
		}
		return paperReport.After(c, *format)(f.measure(c.Context()))
	}
	return c
}

func (f *paperFlags) check() error {
	for _, x := range f.figures {
		if !slices.Contains([]string{"8", "9", "10"}, x) {
			return flags.Unknown("figures", x, "8", "9", "10")
		}
	}
	for _, x := range f.models {
		if x != smallModel && x != largeModel {
			return flags.Unknown("models", x, smallModel, largeModel, "both")
		}
	}
	switch {
	case len(f.figures) == 0 || len(f.models) == 0:
		return fmt.Errorf("--figures or --models is empty; give at least one")
	case !(f.minutes >= 0 && f.minutes <= 1440):
		return fmt.Errorf("--minutes %g is out of range; give minutes above 0, at most 1440", f.minutes)
	case f.seeds < 1 || f.seeds > 100:
		return fmt.Errorf("--seeds %d is out of range; give a number from 1 to 100", f.seeds)
	}
	f.sizes.Policy = "sandwich"
	return f.sizes.CheckService()
}

// measure runs the figures.
func (f *paperFlags) measure(ctx context.Context) ([]load.PaperRow, error) {
	text, err := os.ReadFile(f.params)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--params: %w; run it in the source tree, or name the file", err))
	}
	x := load.XPU{Figures: f.figures, Seeds: f.seeds, Seed: f.seed, Note: show.Notice}
	if x.Params, err = load.ParseXPUParams(text); err != nil {
		return nil, exit.Usage(fmt.Errorf("--params %s: %w", show.Clip(f.params, 60), err))
	}
	x.Params.Minutes = cmp.Or(f.minutes, x.Params.Minutes)
	for i, name := range x.Params.Models {
		if !slices.Contains(f.models, []string{smallModel, largeModel}[i]) {
			continue
		}
		m, err := paperModel(name, x.Params.Type)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--params %s: %w", show.Clip(f.params, 60), err))
		}
		m.Index = i
		x.Models = append(x.Models, m)
	}
	s, err := f.open(&x.Params)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	x.Open = func(on engine.DeviceOptions, change func(*engine.Service)) (*load.Engine, func(), error) {
		sizes := f.sizes
		if change != nil {
			change(&sizes.Service)
		}
		s.Accelerator = on
		defer func() { s.Accelerator = engine.DeviceOptions{} }() // the caller closes the device
		target := &load.Engine{}
		sizes.Observe = target.Observe
		e, err := s.Engine(ctx, sizes.Sizes)
		if err != nil {
			return nil, nil, err
		}
		target.Serve(e)
		return target, e.Close, nil
	}
	rows, err := x.Measure(ctx)
	for i := range rows {
		rows[i].Standin, rows[i].CPU = s.Name, s.Profile.Host.CPUModel
	}
	return rows, err
}

// open opens the stand-in with the sizes of the paper. Its context may exceed that of its training,
// as the tokens have no meaning.
func (f *paperFlags) open(p *load.XPUParams) (*session.Session, error) {
	f.sizes.Context, f.sizes.Parallel, f.sizes.Queue = p.Context, p.Batch, 1<<16
	if f.session.Attention == "" || f.session.Attention == "auto" {
		f.session.Attention = "f32"
	}
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	plan := *s.Plan
	plan.Chunk = min(plan.Chunk, p.Chunk)
	s.Plan = &plan
	return s, nil
}

// paperModel returns the sizes of the matrices of a preset.
func paperModel(name, typ string) (m load.XPUModel, err error) {
	subject, err := session.OpenSubject(name, typ)
	if err != nil {
		return m, err
	}
	defer subject.Close()
	ops, err := subject.Ops()
	if err != nil {
		return m, err
	}
	m.Name = name
	for i := range ops.Weights {
		m.Values += float64(ops.Weights[i].N) * float64(ops.Weights[i].K)
	}
	m.Bytes = m.Values * roofline.Bits(typ) / 8
	return m, nil
}

var paperReport = show.Report[load.PaperRow]{
	Title: func(r *load.PaperRow) string {
		return fmt.Sprintf("Agent.xpu on %s with simulated devices; %s stands for its models, times divided by %.3g",
			r.CPU, r.Standin, r.Factor)
	},
	Columns: []string{"figure", "model", "load", "what", "one device", "two lanes", "change", "paper", "requests"},
	Numbers: []int{4, 5, 6, 8},
	Cells: func(r *load.PaperRow) []string {
		base, requests := ofPair(r, "%.3g")
		return []string{r.Figure, r.Model, r.Load, r.What, show.OrDash(base), fmt.Sprintf("%.3g", r.Ours),
			strings.TrimSuffix(fmt.Sprintf("%.1f", r.Change), ".0"), show.OrDash(r.Paper), show.OrDash(requests)}
	},
	Header: "figure,model,load,what,one device,two lanes,change,paper,requests,time factor",
	Line: func(r *load.PaperRow) string {
		base, requests := ofPair(r, "%.4g")
		return fmt.Sprintf("%s,%s,%s,%s,%s,%.4g,%.4g,%s,%s,%.3g", r.Figure, r.Model, show.CSVCell(r.Load),
			show.CSVCell(r.What), base, r.Ours, r.Change, show.CSVCell(r.Paper), requests, r.Factor)
	},
}

// ofPair returns the figure of the baseline and the number of requests of a row, empty where the
// row compares runs with several loads.
func ofPair(r *load.PaperRow, format string) (base, requests string) {
	if r.Baseline > 0 {
		base = fmt.Sprintf(format, r.Baseline)
	}
	if r.Requests > 0 {
		requests = strconv.Itoa(r.Requests)
	}
	return base, requests
}
