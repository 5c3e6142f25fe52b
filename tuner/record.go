package tuner

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/profiles/retention"
)

// ErrGrid is wrapped by refusals of a folder of grids that another machine or another version of
// this program made.
var ErrGrid = errors.New("these grids are of another machine or version")

// HostFile is the profile of the machine in a folder of grids.
const HostFile = "host.yaml"

// RecordOptions say which grids are recorded. CompareOptions say how; its Key and its Journal are
// set for each weight.
type RecordOptions struct {
	CompareOptions                   // Profile is what the folder holds
	Here           *profiles.Profile // this machine
	Dir            string
	Weights        []plans.WeightKey
	// Recorded is called after each weight with the name of its files and the rows of its
	// comparison; none where an earlier run had finished it.
	Recorded func(name string, rows []CompareRow) error
}

// RecordedRows are the M of a recorded grid: those of generation, and those that searches are
// compared at.
func RecordedRows() []int { return append([]int{1, 4}, comparedRows...) }

// DefaultWeights are the weights of a recorded grid where nobody says which: each arithmetic and
// each way of unpacking, wide and deep.
func DefaultWeights() []plans.WeightKey {
	return []plans.WeightKey{{N: 2048, K: 2048, Type: "f32"}, {N: 2048, K: 2048, Type: "q8_0"},
		{N: 2048, K: 5632, Type: "q4_k"}, {N: 5632, K: 2048, Type: "q4_0"}, {N: 2048, K: 2048, Type: "bf16"}}
}

// Record makes a folder of grids of this machine, which JudgeHeuristic reads: beside host.yaml,
// which the caller has written there, for each weight the journal of a comparison of searches,
// TYPE-NxK.jsonl, which is packed to .jsonl.gz when it is whole. What the default heuristic choose
// is always among the schedules that were timed again. What is there already is kept: whole grids
// are left alone, and one that was cut off goes on. Refusals of a folder that is another machine's
// or another version's wrap ErrGrid or ErrJournal.
func Record(ctx context.Context, o RecordOptions) error {
	if there := o.Profile; there.Fingerprint() != o.Here.Fingerprint() {
		return fmt.Errorf("%w: %s has %s with PUs %s, this is %s with PUs %s; name another folder", ErrGrid, o.Dir,
			there.Host.CPUModel, there.Allowed(), o.Here.Host.CPUModel, o.Here.Allowed())
	}
	for i, key := range o.Weights {
		name := gridName(key, o.Compute)
		c := o.CompareOptions
		c.Key, c.Journal = key, filepath.Join(o.Dir, name+".jsonl")
		if say := o.Progress; say != nil {
			c.Progress = func(p Progress) {
				p.Stage = fmt.Sprintf("%d of %d, %s, %s", i+1, len(o.Weights), key, p.Stage)
				say(p)
			}
		}
		rows, err := recordOne(ctx, c)
		if err != nil {
			return err
		}
		if o.Recorded != nil {
			if err := o.Recorded(name, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// gridName is the name of a grid's files: the path is part of it where somebody chose it.
func gridName(k plans.WeightKey, compute string) string {
	name := fmt.Sprintf("%s-%dx%d", k.Type, k.N, k.K)
	if compute != "" && compute != "auto" {
		name += "-" + compute
	}
	return name
}

// recordOne makes one grid, unless it is there; it returns no rows then.
func recordOne(ctx context.Context, c CompareOptions) ([]CompareRow, error) {
	c.fill()
	c.Options.SeqMax = c.MaxM
	shape := c.shape()
	packed := c.Journal + ".gz"
	head, err := gridHead(packed)
	switch {
	case err == nil:
		if err = checkHead(head, c.journalKey(shape)); err != nil {
			err = fmt.Errorf("grid %s: %w", packed, err)
		}
		return nil, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	rows, err := Compare(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := pack(c.Journal, packed); err != nil {
		return nil, fmt.Errorf("packing a grid: %w", err)
	}
	return rows, os.Remove(c.Journal)
}

// gridHead is the first line of a packed grid.
func gridHead(path string) ([]byte, error) {
	in, err := openGrid(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head := make([]byte, maxGridLine)
	n, err := io.ReadFull(in, head)
	if err == io.EOF {
		err = errNoJournal
	}
	if err != nil && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("grid %s: %w", path, err)
	}
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	return []byte(line), nil
}

// pack compresses the file from into the file to.
func pack(from, to string) error {
	in, err := retention.OpenRegular(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return retention.WriteTo(to, func(out io.Writer) error {
		z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err == nil {
			_, err = io.Copy(z, in)
		}
		if err == nil {
			err = z.Close()
		}
		return err
	})
}
