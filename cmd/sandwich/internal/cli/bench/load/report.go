package load

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

func printLoad(out io.Writer, format string, runs []*load.Run, slo replay.SLO) error {
	var rows []load.Row
	for _, r := range runs {
		rows = append(rows, load.Rows(r, slo)...)
	}
	switch format {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	case "csv":
		return csvLoad(out, rows)
	}
	if err := tableLoad(out, rows, slo); err != nil {
		return err
	}
	return compareClocks(out, rows)
}

// printSweep prints the runs and the results of the sweep; JSON and CSV have only the sweep.
func printSweep(out io.Writer, format string, runs []*load.Run, swept []load.SweepRow, slo replay.SLO) error {
	switch format {
	case "json":
		return show.JSON(out, swept)
	case "csv":
		return csvSweep(out, swept)
	}
	if err := printLoad(out, format, runs, slo); err != nil {
		return err
	}
	var rows [][]string
	for _, r := range swept {
		rows = append(rows, []string{r.Policy, strconv.FormatFloat(r.Scale, 'g', 4, 64), fmt.Sprintf("%.1f", r.Rate),
			fmt.Sprintf("%s, %s", profiles.FormatSeconds(r.MostTTFT), profiles.FormatSeconds(r.MostTPOT)), r.Class,
			strconv.Itoa(r.Requests), fmt.Sprintf("%.0f %%", 100*r.Attainment), fmt.Sprintf("%.1f", r.Goodput),
			millisOf(r.TTFT.P50), millisOf(r.TTFT.P90), millisOf(r.TPOT.P50), millisOf(r.TPOT.P90)})
	}
	fmt.Fprintln(out, "\non the virtual clock, with the op times of the runs above:")
	return show.Table(out, []string{"policy", "times", "per minute", "level TTFT, TPOT", "class", "requests", "within",
		"goodput per minute", "TTFT p50 ms", "p90", "TPOT p50 ms", "p90"}, rows, 1, 2, 5, 6, 7, 8, 9, 10, 11)
}

func csvSweep(out io.Writer, rows []load.SweepRow) error {
	w := csv.NewWriter(out)
	header := []string{"policy", "sweep", "scale", "requests_per_minute", "slo_ttft", "slo_tpot", "class", "requests",
		"slo_attainment", "goodput_per_minute", "ttft_p50", "ttft_p90", "tpot_p50", "tpot_p90"}
	if err := w.Write(header); err != nil {
		return err
	}
	for _, r := range rows {
		cells := []string{r.Policy, r.Sweep}
		for _, v := range []float64{r.Scale, r.Rate, r.MostTTFT, r.MostTPOT} {
			cells = append(cells, strconv.FormatFloat(v, 'g', 6, 64))
		}
		cells = append(cells, r.Class, strconv.Itoa(r.Requests))
		for _, v := range []float64{r.Attainment, r.Goodput, r.TTFT.P50, r.TTFT.P90, r.TPOT.P50, r.TPOT.P90} {
			cells = append(cells, strconv.FormatFloat(v, 'g', 6, 64))
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func csvLoad(out io.Writer, rows []load.Row) error {
	w := csv.NewWriter(out)
	header := []string{"policy", "clock", "class", "requests", "finished"}
	for _, what := range []string{"pending", "ttft", "tpot", "latency", "normalized_latency"} {
		for _, q := range []string{"mean", "p50", "p90", "p99"} {
			header = append(header, what+"_"+q)
		}
	}
	header = append(header, "slo_attainment", "tokens_per_second", "utilization", "halts", "quanta", "aged",
		"preempted", "joules_per_token", "goodput_per_minute")
	if err := w.Write(header); err != nil {
		return err
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, r := range rows {
		cells := []string{r.Policy, r.Clock, r.Class, strconv.Itoa(r.Requests), strconv.Itoa(r.Finished)}
		for _, q := range []load.Quantiles{r.Pending, r.TTFT, r.TPOT, r.Latency, r.Normalized} {
			for _, v := range q.All() {
				cells = append(cells, number(v))
			}
		}
		for _, v := range []float64{r.Attainment, r.Tokens, r.Utilization, float64(r.Halts), float64(r.Quanta),
			float64(r.Aged), float64(r.Preempted), r.Joules, r.Goodput} {
			cells = append(cells, number(v))
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// clockNames maps the clocks to their names in tables.
var clockNames = map[string]string{"wall": "measured", "virtual": "simulated"}

// tableLoad prints the times of each class, then the counts of requests and of the run.
func tableLoad(out io.Writer, rows []load.Row, slo replay.SLO) error {
	quantiles := func(line []string, list ...load.Quantiles) []string {
		for _, q := range list {
			line = append(line, millisOf(q.Mean), millisOf(q.P50), millisOf(q.P90), millisOf(q.P99))
		}
		return line
	}
	var seen, whole [][]string
	for i, r := range rows {
		line := []string{r.Policy, clockNames[r.Clock], r.Class}
		waits := []string{millisOf(r.Pending.P50), millisOf(r.Pending.P99)}
		if r.Utilization == 0 { // unknown for a server
			waits = []string{"", ""}
		}
		seen = append(seen, quantiles(append(append(slices.Clone(line), fmt.Sprintf("%d/%d", r.Finished, r.Requests)),
			waits...), r.TTFT, r.TPOT))
		line = append(quantiles(line, r.Latency), millisOf(r.Normalized.Mean), fmt.Sprintf("%.0f", 100*r.Attainment))
		run := []string{"", "", "", ""}
		if i == 0 || rows[i-1].Policy != r.Policy || rows[i-1].Clock != r.Clock {
			run[0] = fmt.Sprintf("%.1f", r.Tokens)
			if r.Utilization > 0 {
				run[1], run[2] = fmt.Sprintf("%.0f", 100*r.Utilization), strconv.FormatInt(r.Halts, 10)
				run[3] = strconv.FormatInt(r.Quanta, 10)
			}
		}
		whole = append(whole, append(line, run...))
	}
	fmt.Fprintln(out, "Milliseconds until the first forward (wait), until the first token (TTFT), and from one "+
		"token to the next (TPOT):")
	header := []string{"policy", "run", "class", "done", "wait P50", "P99", "TTFT mean", "P50", "P90", "P99",
		"TPOT mean", "P50", "P90", "P99"}
	if err := show.Table(out, header, seen, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nMilliseconds until the last token (latency), and per token of prompt and answer; for the "+
		"whole run the generated tokens\nper second, the share of the time in which forwards ran, halts and quanta:")
	header = []string{"policy", "run", "class", "latency mean", "P50", "P90", "P99", "per token", "SLO %", "tokens/s",
		"busy %", "halts", "quanta"}
	if err := show.Table(out, header, whole, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nSLO: TTFT up to %s, TPOT up to %s.", slo.TTFT, slo.TPOT)
	if r := rows[0]; r.CPU != "" {
		fmt.Fprintf(out, " %s on %s.", r.Model, r.CPU)
	}
	fmt.Fprintln(out)
	for i, r := range rows {
		if i > 0 && rows[i-1].Policy == r.Policy || r.Clock == "virtual" {
			continue
		}
		if r.Joules > 0 {
			fmt.Fprintf(out, "%s: %.3f J per token (%s of this machine)\n", r.Policy, r.Joules, r.JoulesOf)
		}
		if r.NoJoules != "" {
			fmt.Fprintf(out, "%s: energy: not readable: %s\n", r.Policy, show.Printable(r.NoJoules))
		}
		if r.Goodput > 0 {
			fmt.Fprintf(out, "%s: goodput %.1f requests per minute\n", r.Policy, r.Goodput)
		}
	}
	return nil
}

func millisOf(seconds float64) string { return strconv.FormatFloat(1000*seconds, 'f', 1, 64) }

func openInput(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	return f, nil
}
