package machine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/enumerate"
)

// walk enumerates the trees twice, once to count and time them and once to list them, so that it
// keeps no tree in memory.
func (f *treeFlags) walk(ctx context.Context, w io.Writer, tree *topotree.Tree) error {
	if len(tree.Full().Transforms()) != len(tree.Transforms()) {
		return exit.Usage(fmt.Errorf("--enumerate needs a tree with all its PUs; leave out the removes of " +
			"--apply"))
	}
	var stats enumerate.Stats
	bounds := f.bounds
	bounds.Stats = &stats
	began := time.Now()
	for range enumerate.Trees(tree, bounds) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	seconds := time.Since(began).Seconds()
	bounds.Stats = nil
	if f.limit > 0 && (bounds.MaxTrees == 0 || f.limit < bounds.MaxTrees) {
		bounds.MaxTrees = f.limit
	}
	if f.format == "json" {
		return streamTrees(ctx, w, tree, bounds, stats, seconds)
	}
	var rows [][]string
	for t := range enumerate.Trees(tree, bounds) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rows = append(rows, []string{strconv.Itoa(t.PUs()), transformsText(t.Transforms()), t.Digest().String()})
	}
	if err := show.Table(w, []string{"PUs", "transforms", "digest"}, rows, 0); err != nil {
		return err
	}
	if more := stats.Kept - len(rows); more > 0 {
		fmt.Fprintf(w, "... and %d more; --limit 0 lists all\n", more)
	}
	cut := ""
	if stats.Truncated {
		cut = ", limited by --max-trees"
	}
	_, err := fmt.Fprintf(w, "\ngenerated %d, duplicates by digest %d, kept %d%s, %d groupings, in %s\n",
		stats.Generated, stats.Duplicates, stats.Kept, cut, stats.Groups, profiles.FormatSeconds(seconds))
	return err
}

// streamTrees writes the JSON of an enumeration tree by tree.
func streamTrees(ctx context.Context, w io.Writer, tree *topotree.Tree, bounds enumerate.Bounds, stats enumerate.Stats,
	seconds float64) error {
	head, err := json.MarshalIndent(struct {
		enumerate.Stats
		Seconds float64 `json:"seconds"`
	}{stats, seconds}, "", "  ")
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	b.Write(bytes.TrimSuffix(head, []byte("\n}")))
	b.WriteString(",\n  \"trees\": [")
	separator := "\n    "
	for t := range enumerate.Trees(tree, bounds) {
		line, err := json.Marshal(briefTree(t))
		if err != nil {
			return err
		}
		b.WriteString(separator)
		if _, err := b.Write(line); err != nil {
			return err // the reader has closed the pipe
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		separator = ",\n    "
	}
	b.WriteString("\n  ]\n}\n")
	return b.Flush()
}
