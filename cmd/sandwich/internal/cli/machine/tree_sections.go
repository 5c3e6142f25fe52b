package machine

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/runtime/session"
	"sandwich/topotree"
	"sandwich/topotree/section"
)

// sectionOut is a section that cannot partition the model, with the reason.
type sectionOut struct {
	Depth  int           `json:"depth"`
	Kind   topotree.Kind `json:"kind"`
	Reason string        `json:"reason"`
}

// printSections lists the sections of a tree, with --model only those that can partition the model.
func (f *treeFlags) printSections(w io.Writer, tree *topotree.Tree) error {
	sections := section.Of(tree)
	var out []sectionOut
	if f.model != "" {
		s, err := session.OpenSubject(f.model, f.typ)
		if err != nil {
			return exit.Usage(err)
		}
		defer s.Close()
		sections, out = fitting(sections, s.Shape)
	}
	if f.format == "json" {
		j := newTreeJSON(tree)
		j.Colors, j.Tree = nil, nil
		return show.JSON(w, struct {
			treeJSON
			Sections []section.Section `json:"sections"`
			LeftOut  []sectionOut      `json:"left_out,omitempty"`
		}{j, sections, out})
	}
	var rows [][]string
	for _, s := range sections {
		rows = append(rows, sectionRow(s))
	}
	fmt.Fprintf(w, "%s, %d PUs\n\n", transformsText(tree.Transforms()), tree.PUs())
	if err := show.Table(w, []string{"depth", "cut at", "ranks", "prefill PUs per rank", "decode PUs per rank", ""},
		rows,
		0, 2); err != nil {
		return err
	}
	for _, s := range out {
		fmt.Fprintf(w, "excluded: depth %d, %s: %s\n", s.Depth, s.Kind, s.Reason)
	}
	return nil
}

// fitting separates the sections that can partition a model from the others.
func fitting(sections []section.Section, shape plans.ModelShape) (in []section.Section, out []sectionOut) {
	for _, s := range sections {
		if err := shape.Partition(s.TP); err != nil {
			out = append(out, sectionOut{s.Depth, s.Kind, err.Error()})
			continue
		}
		in = append(in, s)
	}
	return in, out
}

func sectionRow(s section.Section) []string {
	var prefill, decode []int
	for _, r := range s.Ranks {
		prefill, decode = append(prefill, r.Prefill.Count()), append(decode, r.Decode.Count())
	}
	var notes []string
	if !s.Even {
		notes = append(notes, "uneven")
	}
	if s.Repeats {
		notes = append(notes, "same ranks as above")
	}
	return []string{strconv.Itoa(s.Depth), s.Kind.String(), strconv.Itoa(s.TP), distinct(prefill), distinct(decode),
		strings.Join(notes, ", ")}
}
