package main

import (
	"fmt"
	"io"
	"strconv"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/tuner"
	"sandwich/tuner/trace"
)

// rankingJSON is the stable JSON of a simulated ranking.
type rankingJSON struct {
	Trees          int             `json:"trees"`
	Sections       int             `json:"sections"`
	Configurations int             `json:"configurations"`
	UnlikeCosts    int             `json:"unlike_costs"`
	Simulated      int             `json:"simulated"`
	Seconds        float64         `json:"seconds"`
	Load           string          `json:"load"`
	Objective      string          `json:"objective"`
	Note           string          `json:"note,omitempty"`
	Assumed        []string        `json:"assumed"`
	Measured       []string        `json:"measured,omitempty"` // the anchors of this machine
	Errors         *errorsJSON     `json:"prediction_errors,omitempty"`
	Candidates     []candidateJSON `json:"candidates"`
}

// errorsJSON are relative errors of predictions on products that were no anchors.
type errorsJSON struct {
	Products int     `json:"products"`
	Median   float64 `json:"median"`
	P90      float64 `json:"p90"`
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

func newRankingJSON(r *tuner.Ranking, host *profiles.Profile) rankingJSON {
	out := rankingJSON{Trees: r.Trees, Sections: r.Sections, Configurations: r.Configs, UnlikeCosts: r.Costs,
		Simulated: len(r.Ranked),
		Seconds:   r.Seconds, Load: r.Load, Objective: r.Objective, Note: r.Note(),
		Assumed: append([]string{}, r.Assumed...)}
	if a := r.Anchors; a != nil {
		median, p90 := a.Error()
		out.Measured, out.Errors = a.Measured, &errorsJSON{len(a.Errors), median, p90}
	}
	nodes := tuner.NodeIDs(host)
	for _, c := range r.Shown() {
		j := candidateJSON{Name: c.Names[0], Names: c.Names, Section: c.Config.Origin.Section, TP: c.Config.TP(),
			Transforms: append([]topotree.Transform{}, c.Config.Origin.Transforms()...),
			PrefillPUs: c.Config.Prefill.String(), DecodePUs: c.Config.Decode.String(),
			PrefillRate: c.PrefillRate, DecodeRate: c.DecodeRate, Throughput: c.Report.Throughput(),
			Latency:    latencyJSON{c.Report.Mean((*trace.Outcome).Latency).Seconds(), c.Report.Latency(0.9).Seconds()},
			Attainment: c.Report.Attainment(r.SLO), Goodput: c.Goodput, BytesPerNode: c.BytesPerNode(nodes)}
		for _, rank := range c.Config.Ranks {
			j.Ranks = append(j.Ranks, rankJSON{rank.PUs.String(), rank.Node()})
		}
		out.Candidates = append(out.Candidates, j)
	}
	return out
}

func printRanking(w io.Writer, r *tuner.Ranking) error {
	fmt.Fprintf(w, "simulated: %s\n%s; objective %s\n\n", r, r.Load, r.Objective)
	var rows [][]string
	for i, c := range r.Shown() {
		rows = append(rows, []string{strconv.Itoa(i + 1), c.Names[0], strconv.Itoa(c.Config.TP()),
			fmt.Sprintf("%d / %d", c.Config.Prefill.Count(), c.Config.Decode.Count()),
			fmt.Sprintf("%.4g", c.PrefillRate), fmt.Sprintf("%.4g", c.DecodeRate),
			profiles.FormatSeconds(c.Report.Mean((*trace.Outcome).Latency).Seconds()),
			profiles.FormatSeconds(c.Report.Latency(0.9).Seconds()),
			fmt.Sprintf("%.0f %%", 100*c.Report.Attainment(r.SLO)), fmt.Sprintf("%.3g", c.Goodput)})
	}
	off := ""
	if median, _ := r.Anchors.Error(); median > 0 {
		off = fmt.Sprintf(" ±%.0f %%", 100*median)
	}
	header := []string{"", "configuration", "TP", "PUs", "prefill tokens/s" + off, "decode tokens/s" + off,
		"latency" + off, "p90", "within SLO", "goodput"}
	if err := show.Table(w, header, rows, 0, 2, 4, 5, 6, 7, 8, 9); err != nil {
		return err
	}
	if note := r.Note(); note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	rests := "\nNothing of this was measured. It rests on:"
	if r.Anchors != nil && len(r.Anchors.Measured) > 0 {
		rests = "\nNothing of this was run. It rests on:"
		for _, m := range append(r.Anchors.Measured, r.Anchors.String()) {
			rests += "\n- " + m
		}
	}
	fmt.Fprintln(w, rests)
	for _, a := range r.Assumed {
		fmt.Fprintf(w, "- %s\n", a)
	}
	return nil
}
