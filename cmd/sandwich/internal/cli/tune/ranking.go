package tune

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/evidence"
	"sandwich/profiles"
	"sandwich/runtime/model/cost"
	"sandwich/topotree"
	"sandwich/tuner/ranking"
	"sandwich/tuner/replay"
)

// rankingJSON is the JSON form of a simulated ranking. It is stable.
type rankingJSON struct {
	Trees          int                   `json:"trees"`
	Sections       int                   `json:"sections"`
	Configurations int                   `json:"configurations"`
	DistinctCosts  int                   `json:"distinct_costs"`
	Simulated      int                   `json:"simulated"`
	Seconds        float64               `json:"seconds"`
	Load           string                `json:"load"`
	Objective      string                `json:"objective"`
	Note           string                `json:"note,omitempty"`
	Assumed        []string              `json:"assumed"`
	Measured       []string              `json:"measured,omitempty"` // anchors measured on this machine
	Errors         *evidence.TraceErrors `json:"prediction_errors,omitempty"`
	Candidates     []candidateJSON       `json:"candidates"`
	Classes        []ranking.ClassRow    `json:"classes,omitempty"` // kinds of cores, if there are several
	Placed         []cost.Placed         `json:"placed,omitempty"`  // where ops run under the best candidate
}

type candidateJSON struct {
	Name         string               `json:"name"`
	Names        []string             `json:"names"`
	Transforms   []topotree.Transform `json:"transforms"`
	Section      string               `json:"section"`
	TP           int                  `json:"tp"`
	Ranks        []rankJSON           `json:"ranks"`
	PrefillPUs   string               `json:"prefill_pus"`
	DecodePUs    string               `json:"decode_pus"`
	PrefillRate  float64              `json:"prefill_tokens_per_second"`
	DecodeRate   float64              `json:"decode_tokens_per_second"`
	Latency      latencyJSON          `json:"latency_s"`
	Throughput   float64              `json:"throughput_tokens_per_second"`
	Attainment   float64              `json:"attainment"`
	Goodput      float64              `json:"goodput"`
	BytesPerNode []int64              `json:"bytes_per_node"`
}

type rankJSON struct {
	PUs  string `json:"pus"`
	Node int    `json:"node"`
}

type latencyJSON struct {
	Mean float64 `json:"mean"`
	P90  float64 `json:"p90"`
}

func newRankingJSON(r *ranking.Ranking, host *profiles.Profile) rankingJSON {
	out := rankingJSON{Trees: r.Trees, Sections: r.Sections, Configurations: r.Configs, DistinctCosts: r.Costs,
		Simulated: len(r.Ranked),
		Seconds:   r.Seconds, Load: r.Load, Objective: r.Objective, Note: r.Note(),
		Assumed: append([]string{}, r.Assumed...), Classes: r.Classes, Placed: r.Placed}
	if out.Errors = r.Anchors.Error(); out.Errors != nil {
		out.Measured = r.Anchors.Measured
	}
	nodes := ranking.NodeIDs(host)
	for _, c := range r.Shown() {
		j := candidateJSON{Name: c.Names[0], Names: c.Names, Section: c.Config.Origin.Section, TP: c.Config.TP(),
			Transforms: append([]topotree.Transform{}, c.Config.Origin.Transforms()...),
			PrefillPUs: c.Config.Prefill.String(), DecodePUs: c.Config.Decode.String(),
			PrefillRate: c.PrefillRate, DecodeRate: c.DecodeRate, Throughput: c.Report.Throughput(),
			Latency: latencyJSON{c.Report.Mean((*replay.Outcome).Latency).Seconds(),
				c.Report.Latency(0.9).Seconds()},
			Attainment: c.Report.Attainment(r.SLO), Goodput: c.Goodput, BytesPerNode: c.BytesPerNode(nodes)}
		for _, rank := range c.Config.Ranks {
			j.Ranks = append(j.Ranks, rankJSON{rank.PUs.String(), rank.Node()})
		}
		out.Candidates = append(out.Candidates, j)
	}
	return out
}

// printRanking prints the best candidates and the assumptions of the simulation.
func printRanking(w io.Writer, r *ranking.Ranking) error {
	fmt.Fprintf(w, "simulated: %s\n%s; objective %s\n\n", r, r.Load, r.Objective)
	var rows [][]string
	for i, c := range r.Shown() {
		rows = append(rows, []string{strconv.Itoa(i + 1), c.Names[0], strconv.Itoa(c.Config.TP()),
			fmt.Sprintf("%d / %d", c.Config.Prefill.Count(), c.Config.Decode.Count()),
			fmt.Sprintf("%.4g", c.PrefillRate), planreport.RateText(c.DecodeRate),
			profiles.FormatSeconds(c.Report.Mean((*replay.Outcome).Latency).Seconds()),
			profiles.FormatSeconds(c.Report.Latency(0.9).Seconds()),
			fmt.Sprintf("%.0f %%", 100*c.Report.Attainment(r.SLO)), fmt.Sprintf("%.3g", c.Goodput)})
	}
	off := ""
	if e := r.Anchors.Error(); e != nil {
		off = fmt.Sprintf(" ±%.0f %%", 100*e.Median)
	}
	header := []string{"", "configuration", "TP", "PUs", "prefill tokens/s" + off, "decode tokens/s" + off,
		"latency" + off, "p90", "within SLO", "goodput"}
	if err := show.Table(w, header, rows, 0, 2, 4, 5, 6, 7, 8, 9); err != nil {
		return err
	}
	if note := r.Note(); note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	if err := printClasses(w, r); err != nil {
		return err
	}
	rests := "\nNothing was measured. The simulation is based on:"
	if e := r.Anchors.Error(); e != nil {
		rests = "\nNo configuration was run. The simulation is based on:"
		for _, m := range append(slices.Clone(r.Anchors.Measured), e.String()) {
			rests += "\n- " + m
		}
	}
	fmt.Fprintln(w, rests)
	for _, a := range r.Assumed {
		fmt.Fprintf(w, "- %s\n", a)
	}
	return nil
}

// printClasses prints the kinds of cores and how they share the ops of the best configuration.
func printClasses(w io.Writer, r *ranking.Ranking) error {
	if len(r.Classes) == 0 {
		return nil
	}
	var rows [][]string
	for _, c := range r.Classes {
		rows = append(rows, []string{c.Name, c.PUs, profiles.FormatRate(c.Peak, "FLOP/s"), fmt.Sprintf("%.2g", c.Share),
			profiles.FormatRate(c.Read, "B/s")})
	}
	fmt.Fprintln(w)
	header := []string{"cores", "PUs", "float32, joint", "of the fastest core", "read, joint"}
	if err := show.Table(w, header, rows, 2, 3, 4); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nUnder the first configuration, by the ceilings of the kinds of cores:\n")
	return planreport.PlacedReport.Print(w, r.Placed, "table")
}
