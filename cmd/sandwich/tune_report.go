package main

import (
	"fmt"
	"io"

	"sandwich/cmd/sandwich/internal/bundle"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
)

func (f *tuneFlags) report(w io.Writer, b *plans.Bundle, path string) error {
	if f.svg != "" {
		if err := writePhases(f.svg, b); err != nil {
			return err
		}
	}
	tale, err := newStory(b)
	if err != nil {
		return err
	}
	if f.format == "json" {
		return show.JSON(w, struct {
			Path string `json:"path"`
			plans.Summary
			Story    *story           `json:"story"`
			Rejected []plans.Rejected `json:"rejected_candidates"`
		}{path, b.Show(), tale, b.Evidence.Rejected})
	}
	if !f.explain {
		fmt.Fprintf(w, "%s: %s\n", path, b.Plan.Headline(b.State()))
		return bundle.Races(w, b)
	}
	fmt.Fprintf(w, "%s: ", path)
	if err := tale.print(w, b); err != nil {
		return err
	}
	if tale.Rejected > 0 {
		fmt.Fprintf(w, "\n`sandwich plan explain %s --rejected` lists the %d candidates that were rejected, and why.\n",
			path, tale.Rejected)
	}
	return nil
}
