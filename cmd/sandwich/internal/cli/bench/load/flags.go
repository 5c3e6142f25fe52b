package load

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/sched"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

// filesText describes the files of arrivals in help texts.
const filesText = `--record writes the arrivals, and --replay offers them again at the same times; the rates, the sets and --duration then
have no effect. The file has one JSON object per line, with the time in seconds from the start and lengths in tokens;
prompts are generated from --seed:
  {"at": 1.5, "class": "reactive", "prompt": 120, "output": 64}`

// loadFlags holds the flags of the verbs of bench load. Each verb adds those that apply to it.
type loadFlags struct {
	session  modelflags.Flags
	sizes    modelflags.Service
	url      string // server to measure; "" measures an engine in this process
	key      string
	policies []string
	rates    [2]float64 // requests per minute, by class
	sets     [2]string  // names of the sets of lengths, by class
	during   time.Duration
	seed     uint64
	slo      replay.SLO
	hasSLO   bool // the verb has the flags of slo
	record   string
	replay   string
	svg      string

	simulate bool     // also run the arrivals on the virtual clock
	sweep    string   // what bench load sweep varies
	goodput  int      // runs of bench load goodput
	goals    []string // of bench load goal
	seeds    int      // runs of bench load goal
	machine  string   // machine of bench load devices
	lanes    []string // its devices, by setting
	typ      string

	swept []load.SweepRow // results of a sweep over all policies
}

// addEngine adds the flags of the model, the policies and the sizes of the engine.
func (f *loadFlags) addEngine(c *cobra.Command) {
	f.session.Add(c)
	fs := c.Flags()
	fs.StringSliceVar(&f.policies, "policy", []string{sched.DefaultPolicy}, "policies to measure one after another: "+
		strings.Join(sched.Policies(), ", "))
	f.sizes.AddShares(fs)
	fs.IntVar(&f.sizes.Parallel, "parallel", 8, "maximum number of concurrent requests")
	fs.IntVar(&f.sizes.Context, "ctx", 1024, "maximum number of tokens of a request; longer ones are shortened")
	fs.IntVar(&f.sizes.Queue, "queue", 1024, "maximum number of waiting requests per class")
}

// addServer adds the flags of a server to measure.
func (f *loadFlags) addServer(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "url", "", "server to measure instead of the engine in this process")
	fs.StringVar(&f.key, "api-key", "", "API key for the server")
}

// addArrivals adds the flags of random arrivals.
func (f *loadFlags) addArrivals(fs *pflag.FlagSet) {
	fs.Float64Var(&f.rates[sched.Reactive], "reactive", 3, "reactive requests per minute")
	fs.Float64Var(&f.rates[sched.Proactive], "proactive", 6, "proactive requests per minute")
	fs.StringVar(&f.sets[sched.Reactive], "reactive-set", "mixed", "set of lengths of reactive requests")
	fs.StringVar(&f.sets[sched.Proactive], "proactive-set", "mixed", "set of lengths of proactive requests")
	flags.Duration(fs, &f.during, "duration", time.Minute, "time during which requests arrive")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of arrivals, lengths and prompts")
}

// addFiles adds the flags that record and replay arrivals.
func (f *loadFlags) addFiles(fs *pflag.FlagSet) {
	fs.StringVar(&f.record, "record", "", "file to write the arrivals to")
	fs.StringVar(&f.replay, "replay", "", "file with recorded arrivals to offer instead of random ones")
}

// addSLO adds the flags of the service level.
func (f *loadFlags) addSLO(fs *pflag.FlagSet) {
	f.hasSLO = true
	flags.Duration(fs, &f.slo.TTFT, "slo-ttft", 2*time.Second, "service level: maximum time to the first token")
	flags.Duration(fs, &f.slo.TPOT, "slo-tpot", 200*time.Millisecond, "service level: maximum time per output token")
}

// setsText lists the built-in sets with their properties.
func setsText() string {
	var b strings.Builder
	b.WriteString("Lengths are named after the sets of Agent.xpu section 6.1; only these statistics are known here:\n")
	for _, class := range []sched.Class{sched.Reactive, sched.Proactive} {
		list, _ := replay.SetsOf("mixed", class)
		for _, s := range list {
			fmt.Fprintf(&b, "  %-15s %-10s %s\n", s.Name, class, s.Source)
		}
	}
	return b.String()
}

// check rejects values out of range of the flags that all verbs have, and removes repeated
// policies.
func (f *loadFlags) check() error {
	var distinct []string
	for _, p := range f.policies {
		if !slices.Contains(distinct, p) {
			distinct = append(distinct, p)
		}
	}
	f.policies = distinct
	for _, p := range f.policies {
		f.sizes.Policy = p
		if err := f.sizes.CheckService(); err != nil {
			return exit.Usage(err)
		}
	}
	return exit.Usage(cmp.Or(f.checkSizes(), f.checkArrivals(), f.checkServer()))
}

func (f *loadFlags) checkSizes() error {
	s := &f.sizes
	switch {
	case len(f.policies) == 0:
		return errors.New("--policy is empty; give at least one policy")
	case s.Parallel < 1 || s.Parallel > modelflags.MaxParallel:
		return fmt.Errorf("--parallel %d is out of range; give a number from 1 to %d", s.Parallel,
			modelflags.MaxParallel)
	case s.Context < 2 || s.Context > modelflags.MaxContext:
		return fmt.Errorf("--ctx %d is out of range; give a number of tokens from 2 to %d", s.Context,
			modelflags.MaxContext)
	case s.Queue < 0 || s.Queue > 1<<20:
		return fmt.Errorf("--queue %d is out of range; give a number from 0 to %d", s.Queue, 1<<20)
	}
	return nil
}

func (f *loadFlags) checkArrivals() error {
	if f.during <= 0 || f.during > 24*time.Hour {
		return fmt.Errorf("--duration %s is out of range; give a time above 0, at most 24h", f.during)
	}
	if f.hasSLO && f.slo.TTFT <= 0 {
		return errors.New("--slo-ttft is not above 0; give a time such as 2s")
	}
	if f.hasSLO && f.slo.TPOT <= 0 {
		return errors.New("--slo-tpot is not above 0; give a time such as 200ms")
	}
	for class, r := range f.rates {
		if !(r >= 0 && r <= 1e5) {
			return fmt.Errorf("--%s %g is not a rate; give a number of requests per minute from 0 to 100000",
				sched.Class(class), r)
		}
	}
	return nil
}

func (f *loadFlags) checkServer() error {
	if f.url == "" {
		return nil
	}
	if len(f.policies) > 1 {
		return errors.New("--policy selects policies of the engine in this process; leave it or --url out")
	}
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--url %s is not the address of a server; give one such as http://127.0.0.1:8080",
			show.Clip(f.url, 60))
	}
	return nil
}
