package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// haltFlags are the flags of bench load halts.
type haltFlags struct {
	session modelflags.Flags
	tokens  int
	bound   time.Duration
	halts   int
	seed    uint64
}

func newHalts() *cobra.Command {
	var f haltFlags
	c := &cobra.Command{
		Use:   "halts --device ID",
		Short: "Measure how long a prompt on a device takes to halt",
		Long: `Run a prompt on a device again and again, ask it to halt at a random time, and print the time until it has halted, as
reactive requests wait for proactive ones. A prompt runs in segments of at most --op-bound by prediction, of which two are
in flight, so that a halt takes at most about two segments.`,
		Example: `  sandwich bench load halts --device cuda:0
  sandwich bench load halts --device vulkan:0 --tokens 256 --op-bound 2ms --halts 500 --format csv`,
		Args: flags.ExactArgs(0, ""),
	}
	f.session.Add(c)
	f.session.AddDevice(c)
	fs := c.Flags()
	fs.IntVar(&f.tokens, "tokens", 512, "tokens of the prompt, at most a chunk of the plan")
	flags.Duration(fs, &f.bound, "op-bound", sched.DefaultBound, "predicted time of a segment")
	fs.IntVar(&f.halts, "halts", 200, "number of halts")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the times")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if fs.Lookup("device-phases").Value.String() == "auto" { // the measured phase is given
			if err := fs.Set("device-phases", "prefill"); err != nil {
				return err
			}
		}
		if err := exit.Usage(f.check(fs.Changed("device"))); err != nil {
			return err
		}
		row, err := f.measure(c.Context())
		return haltReport.After(c, *format)([]haltRow{row}, err)
	}
	return c
}

func (f *haltFlags) check(device bool) error {
	switch {
	case !device:
		return errors.New("--device is missing; give an ID listed by 'sandwich doctor devices', such as cuda:0")
	case f.tokens < 1 || f.tokens > 1<<20:
		return fmt.Errorf("--tokens %d is out of range; give a number from 1 to %d", f.tokens, 1<<20)
	case f.bound < 0 || f.bound > time.Minute:
		return fmt.Errorf("--op-bound %s is out of range; give a time from 0 to 1m", f.bound)
	case f.halts < 1 || f.halts > 100000:
		return fmt.Errorf("--halts %d is out of range; give a number from 1 to 100000", f.halts)
	}
	return nil
}

// haltRow is the result of bench load halts. Its JSON is stable. Times are in seconds.
type haltRow struct {
	Model         string  `json:"model"`
	Device        string  `json:"device"`
	Tokens        int     `json:"tokens"`
	Halts         int     `json:"halts"`
	Segments      int     `json:"segments_per_prompt"`
	Segment       float64 `json:"segment_seconds"`
	P50           float64 `json:"p50_seconds"`
	P99           float64 `json:"p99_seconds"`
	Max           float64 `json:"max_seconds"`
	P50InSegments float64 `json:"p50_segments"`
	P99InSegments float64 `json:"p99_segments"`
}

// measure opens the model and the device and halts prompts.
func (f *haltFlags) measure(ctx context.Context) (row haltRow, err error) {
	s, err := f.session.Open()
	if err != nil {
		return row, err
	}
	defer s.Close()
	if s.Accelerator.Device == nil {
		return row, exit.Usage(errors.New("no device runs the prompt; give --device with an ID of " +
			"'sandwich doctor devices'"))
	}
	row = haltRow{Model: s.Name, Device: s.Accelerator.Name, Tokens: min(f.tokens, s.Plan.Chunk), Halts: f.halts}
	h, err := s.MeasureHalts(ctx, row.Tokens, f.halts, f.bound, f.seed)
	if err != nil {
		return row, exit.Model(err)
	}
	segment := max(h.Segment.Seconds(), 1e-9)
	row.Segments, row.Segment = h.Segments, segment
	row.P50, row.P99 = replay.Quantile(h.Latencies, 0.5).Seconds(), replay.Quantile(h.Latencies, 0.99).Seconds()
	row.Max = replay.Quantile(h.Latencies, 1).Seconds()
	row.P50InSegments, row.P99InSegments = row.P50/segment, row.P99/segment
	return row, nil
}

var haltReport = show.Report[haltRow]{
	Title: func(r *haltRow) string {
		return fmt.Sprintf("%s on %s: halts of prompts of %d tokens; times in milliseconds:", r.Model, r.Device,
			r.Tokens)
	},
	Columns: []string{"halts", "segments", "segment", "P50", "P99", "maximum", "P50 in segments", "P99 in segments"},
	Numbers: []int{0, 1, 2, 3, 4, 5, 6, 7},
	Cells: func(r *haltRow) []string {
		millis := func(seconds float64) string { return fmt.Sprintf("%.3f", 1e3*seconds) }
		return []string{strconv.Itoa(r.Halts), strconv.Itoa(r.Segments), millis(r.Segment), millis(r.P50),
			millis(r.P99), millis(r.Max), fmt.Sprintf("%.2f", r.P50InSegments), fmt.Sprintf("%.2f", r.P99InSegments)}
	},
	Header: "model,device,tokens,halts,segments,\"segment, s\",\"P50, s\",\"P99, s\",\"maximum, s\"," +
		"P50 in segments,P99 in segments",
	Line: func(r *haltRow) string {
		return fmt.Sprintf("%s,%s,%d,%d,%d,%.4g,%.4g,%.4g,%.4g,%.3g,%.3g", r.Model, r.Device, r.Tokens, r.Halts,
			r.Segments, r.Segment, r.P50, r.P99, r.Max, r.P50InSegments, r.P99InSegments)
	},
}
