package load

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/tuner/measure/load"
)

// Accuracy goals of the virtual clock for means and 90th percentiles, and the number of requests
// that a run needs for a 90th percentile.
const (
	nearMean, nearP90 = 15, 25 // per cent
	manyRequests      = 200
)

// compareClocks prints the error of the virtual clock for runs on both clocks.
func compareClocks(out io.Writer, rows []load.Row) error {
	var cells [][]string
	near, all, fewest, even := 0, 0, manyRequests, 0
	slowest, fastest := 1.0, 1.0
	offered := map[string]int{}
	for _, sim := range rows {
		for _, real := range rows {
			if sim.Clock != "virtual" || real.Clock != "wall" || sim.Policy != real.Policy || sim.Class != real.Class {
				continue
			}
			off := func(sim, even0, real, limit float64) string {
				if real == 0 {
					return ""
				}
				percent := 100 * (sim/real - 1)
				if all++; math.Abs(percent) <= limit {
					near++
				}
				if math.Abs(100*(even0/real-1)) <= limit {
					even++
				}
				return fmt.Sprintf("%+.1f", percent)
			}
			cells = append(cells, []string{sim.Policy, sim.Class, strconv.Itoa(real.Requests),
				off(sim.TTFT.Mean, sim.Even.TTFT.Mean, real.TTFT.Mean, nearMean),
				off(sim.TTFT.P90, sim.Even.TTFT.P90, real.TTFT.P90, nearP90),
				off(sim.TPOT.Mean, sim.Even.TPOT.Mean, real.TPOT.Mean, nearMean),
				off(sim.TPOT.P90, sim.Even.TPOT.P90, real.TPOT.P90, nearP90)})
			if sim.Pace[0] > 0 {
				fastest, slowest = min(fastest, sim.Pace[0]), max(slowest, sim.Pace[1])
			}
			offered[sim.Policy] += real.Requests
		}
	}
	for _, n := range offered {
		fewest = min(fewest, n)
	}
	if len(cells) == 0 {
		return nil
	}
	fmt.Fprint(out, "\nMeasured: the requests were offered to the engine in real time. Simulated: the same arrivals "+
		"through the same scheduler on\na virtual clock; a forward takes the time of its ops in the measured run, "+
		"times the slowdown of the machine in that second.\nError of the simulated times in percent of the measured "+
		"ones:\n")
	header := []string{"policy", "class", "requests", "TTFT mean %", "P90 %", "TPOT mean %", "P90 %"}
	if err := show.Table(out, header, cells, 2, 3, 4, 5, 6); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d of %d are within the goals: %d %% for a mean, %d %% for a P90. In 80 %% of the seconds of "+
		"the runs\nthe same work took between %.2f and %.2f of its usual time; without this correction %d are within "+
		"the goals.", near, all, nearMean, nearP90, fastest, slowest, even)
	if fewest < manyRequests {
		fmt.Fprintf(out, " A run has only %s; below %d a single request changes a P90.",
			message.Plural(fewest, "request"), manyRequests)
	}
	fmt.Fprintln(out)
	if distinct, equal := orders(rows); distinct > 0 {
		fmt.Fprintf(out, "The simulated order of two policies equals the measured one in %d of %d cases with "+
			"distinct measured means\n(95 %% intervals) of a class.\n", equal, distinct)
	}
	return nil
}

// orders counts the pairs of policies whose measured means differ, by class, for the first token
// and between tokens, and how many of them the virtual clock puts in the same order.
func orders(rows []load.Row) (distinct, equal int) {
	simulated := map[[2]string]load.Row{}
	var real []load.Row
	for _, r := range rows {
		if r.Clock == "virtual" {
			simulated[[2]string{r.Policy, r.Class}] = r
		} else {
			real = append(real, r)
		}
	}
	for i, a := range real {
		for _, b := range real[:i] {
			sa, known := simulated[[2]string{a.Policy, a.Class}]
			sb, both := simulated[[2]string{b.Policy, b.Class}]
			if !known || !both || a.Class != b.Class {
				continue
			}
			for _, q := range [][4]load.Quantiles{
				{a.TTFT, b.TTFT, sa.TTFT, sb.TTFT},
				{a.TPOT, b.TPOT, sa.TPOT, sb.TPOT},
			} {
				if math.Abs(q[0].Mean-q[1].Mean) <= q[0].Half+q[1].Half {
					continue
				}
				if distinct++; (q[0].Mean < q[1].Mean) == (q[2].Mean < q[3].Mean) {
					equal++
				}
			}
		}
	}
	return distinct, equal
}
