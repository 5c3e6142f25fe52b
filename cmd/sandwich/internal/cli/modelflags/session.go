// Package modelflags has the flags of verbs that open a model under a plan, and the limits of
// their values.
package modelflags

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/selection"
	"sandwich/runtime/mem"
	"sandwich/runtime/session"
)

// minMemory is the minimum address space in bytes for loading a model: generated code and the
// heap of the Go runtime reserve address space in blocks of 64 MiB.
const minMemory = 160 << 20

// computePaths lists the values of --compute.
var computePaths = []string{"auto", "f32", "int8", "int8-256", "int8-k", "bf16", "bf16-tile"}

// Flags holds the flags shared by the verbs that run a model: the model, the plan and
// overrides.
type Flags struct {
	Model, plan      string
	ISA, KV, Compute string
	Attention        string
	device           string         // see AddDevice
	verb             *cobra.Command // the verb; nil if it has no --device
	devicePhases     string
	deviceOps        string
	deviceRounding   bool
	deviceDivide     bool
	deviceStatic     bool
	obeysPlacement   bool // the verb runs phases on a device
	Plans            PlanList
	Threads, Ranks   int
	Spin             time.Duration
	FirstPUs         bool // an untuned plan takes the first PUs, even if other processes use them
	Loading          session.Stages
	Wants            purpose
	Notice           func(line string) // prints a line for the user; nil: show.Notice
}

// Of returns the flags for another model and, unless they are "", its plan and its device, on the
// same PUs as other models of this process. Without a device that is given, it is that of the plan.
func (f Flags) Of(model, plan, device string) *Flags {
	f.Model, f.plan, f.obeysPlacement, f.FirstPUs = model, plan, true, true
	switch {
	case device != "":
		f.device = device
	case !f.deviceGiven():
		f.device = ""
	}
	if f.device == noDevice {
		f.devicePhases, f.deviceOps = "", ""
		f.deviceRounding, f.deviceDivide, f.deviceStatic = false, false, false
	}
	if plan != "" {
		f.Plans.Location = ""
	}
	return &f
}

// Exclusive returns an error if a flag is set that --models sets for each model.
func (f *Flags) Exclusive() error {
	for _, x := range []struct{ name, value string }{{"--model", f.Model}, {"--plan", f.plan}} {
		if x.value != "" {
			return fmt.Errorf("%s cannot be used with --models; name the model and its plan there", x.name)
		}
	}
	return nil
}

// note prints a line for the user.
func (f *Flags) note(line string) {
	if f.Notice != nil {
		f.Notice(line)
		return
	}
	show.Notice(line)
}

// Add adds the flags of the model and the plan.
func (f *Flags) Add(c *cobra.Command) {
	f.AddPlan(c)
	c.Flags().IntVarP(&f.Threads, "threads", "t", 0, "worker threads, one per PU (default: as in the plan)")
}

// AddPlan adds the flags of the model and the plan except --threads.
func (f *Flags) AddPlan(c *cobra.Command) {
	f.AddModel(c)
	c.Flags().StringVar(&f.plan, "plan", "", "plan bundle (default: the newest one for this host and model in "+
		dataFolderText+", else the default plan)")
}

// AddModel adds the flags of the model except --plan and --threads.
func (f *Flags) AddModel(c *cobra.Command) {
	fs := c.Flags()
	modelref.Flag(c, &f.Model, "model", "m", "", "GGUF file, pulled model or reference, such as hf:OWNER/REPO "+
		"(default: the embedded model)")
	fs.IntVar(&f.Ranks, "tp", 0, "tensor-parallel ranks, each with separate PUs and memory (default: as in the "+
		"plan, else 1)")
	fs.StringVar(&f.ISA, "isa", "", "instruction set of the kernels: avx512, avx2, neon or go (default: the "+
		"widest); 1=avx2 sets that of worker 1")
	fs.StringVar(&f.KV, "kv", "", "type of the KV cache: f16, f32 or q8_0 (default: as in the plan, else f16)")
	fs.StringVar(&f.Compute, "compute", "auto", "arithmetic by weight: auto (the fastest by the measured rates of "+
		"this CPU), f32 (exact), int8 (quantized weights), int8-256 (weights in blocks of 256, with a scale per 256 "+
		"activations), int8-k (the same weights, with exact integer sums), bf16 or bf16-tile (bf16 weights, on a CPU "+
		"with bfloat16 dot products or tile products)")
	fs.StringVar(&f.Attention, "attention", "auto", "dot product of attention: auto (the fastest by the measured "+
		"rates of this CPU, unless weights are computed in f32), f32 (exact), dpbf16 (bfloat16, avx512_bf16), "+
		"tdpbf16 (bfloat16, amx), or dpbusd (integers, avx512_vnni, --kv q8_0)")
	flags.Duration(fs, &f.Spin, "spin", 50*time.Microsecond,
		"how long a waiting worker spins before it sleeps; 0 sleeps at once")
}

// Open reads the model and the profile of this machine and chooses the plan, whose name it prints
// to stderr. The caller closes the session.
func (f *Flags) Open() (*session.Session, error) {
	if f.plan != "" && f.Plans.Location != "" {
		return nil, exit.Usage(errors.New("--plan and --plans exclude each other; give one of them"))
	}
	s, err := f.Load()
	if err != nil {
		return nil, err
	}
	if err := f.Choose(s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Choose sets the plan of the session according to the flags and opens its device, for verbs that
// use one.
func (f *Flags) Choose(s *session.Session) error {
	f.Loading.At("choosing the plan", 0)
	s.CloseDevice()
	defer func() { s.Accelerator.Divide, s.Accelerator.Static = f.deviceDivide, f.deviceStatic }()
	c, err := choosePlan(f.asked(), s.Profile, s.Shape)
	if err != nil {
		return err
	}
	placed := c.Plan.Placement != nil || c.Lacks != ""
	if f.obeysPlacement && f.usesDevice() && (f.deviceGiven() || !placed) {
		return f.chooseDevice(f.context(), s, c)
	}
	f.use(s, c)
	if f.obeysPlacement && !f.deviceGiven() {
		return f.openPlanned(f.context(), s)
	}
	return nil
}

// use sets the plan of the session.
func (f *Flags) use(s *session.Session, c *selection.Choice) {
	s.Use(c, f.asked().Replan(s.Profile, s.Shape, c.Plan))
}

// Load reads the model and the profile of this machine, without choosing a plan.
func (f *Flags) Load() (*session.Session, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if err := mem.CheckLimit(minMemory); err != nil {
		return nil, exit.Usage(err)
	}
	s, err := session.Open(f.Model, session.Hooks{Spin: f.Spin, Stages: f.Loading, Notice: f.note, Bar: show.ByteBar})
	if err != nil {
		return nil, exit.Usage(err)
	}
	if err := f.Wants.suits(s); err != nil {
		s.Close()
		return nil, exit.Usage(err)
	}
	f.Loading.At("probing the machine", 0)
	if s.Profile, err = machine.Live(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Check rejects values that are out of range or unknown. It does not look at the machine.
func (f *Flags) Check() error {
	if err := f.checkDevice(); err != nil {
		return exit.Usage(err)
	}
	switch {
	case f.Threads < 0:
		return exit.Usage(fmt.Errorf("--threads %d is negative; give a number of at least 1", f.Threads))
	case f.Ranks < 0:
		return exit.Usage(fmt.Errorf("--tp %d is negative; give a number of at least 1", f.Ranks))
	case f.Spin < 0 || f.Spin > time.Second:
		return exit.Usage(fmt.Errorf("--spin %s is out of range; give a duration from 0 to 1s", f.Spin))
	case f.Compute != "" && !slices.Contains(computePaths, f.Compute):
		return exit.Usage(flags.Unknown("compute", f.Compute, computePaths...))
	case f.Attention != "" && f.Attention != "auto":
		if _, err := microkernel.ParseAttentionDot(f.Attention); err != nil {
			return exit.Usage(fmt.Errorf("--attention: %w", err))
		}
	}
	if _, err := plans.ParseWorkerISAs(f.ISA); err != nil {
		return exit.Usage(fmt.Errorf("--isa: %w", err))
	}
	if f.KV != "" {
		if _, err := microkernel.ParseKVType(f.KV); err != nil {
			return exit.Usage(fmt.Errorf("--kv: %w", err))
		}
	}
	return nil
}
