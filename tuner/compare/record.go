package compare

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
	"sandwich/tuner/run"
	"sandwich/tuner/trials"
)

// ErrGrid is wrapped by errors about a folder of grids of another machine or another version of
// this program.
var ErrGrid = errors.New("these grids are of another machine or version")

// HostFile is the profile of the machine in a folder of grids.
const HostFile = "host.yaml"

// RecordOptions configure which grids are recorded. Options configure how; Record sets its
// Key and Journal for each weight.
type RecordOptions struct {
	Options                   // Profile is the one in the folder
	Here    *profiles.Profile // this machine
	Dir     string
	Weights []plans.WeightKey
	// Recorded is called after each weight with the name of its files and the rows of its
	// comparison, or without rows if an earlier run had finished it.
	Recorded func(name string, rows []Row) error
}

// RecordedRows returns the M of a recorded grid: those of decode, and those at which searches are
// compared.
func RecordedRows() []int { return append([]int{1, 4}, comparedRows...) }

// DefaultWeights returns the weights of a recorded grid if none are given: each arithmetic and each
// way of unpacking, wide and deep.
func DefaultWeights() []plans.WeightKey {
	return []plans.WeightKey{{N: 2048, K: 2048, Type: "f32"}, {N: 2048, K: 2048, Type: "q8_0"},
		{N: 2048, K: 5632, Type: "q4_k"}, {N: 5632, K: 2048, Type: "q4_0"}, {N: 2048, K: 2048, Type: "bf16"}}
}

// Record makes a folder of grids of this machine for JudgeHeuristic. The caller has written
// host.yaml there. For each weight Record writes the journal of a comparison of searches,
// TYPE-NxK.jsonl, and compresses it to .jsonl.gz when it is complete. The choice of the default
// heuristic is always among the schedules that are timed again. Complete grids in the folder are
// kept, and an incomplete one is continued. Errors about a folder of another machine or version
// wrap ErrGrid or ErrJournal.
func Record(ctx context.Context, o RecordOptions) error {
	if there := o.Profile; there.Fingerprint() != o.Here.Fingerprint() {
		return fmt.Errorf("%w: %s has %s with PUs %s, this is %s with PUs %s; name another folder", ErrGrid, o.Dir,
			there.Host.CPUModel, there.Allowed(), o.Here.Host.CPUModel, o.Here.Allowed())
	}
	for i, key := range o.Weights {
		name := gridName(key, o.Compute)
		c := o.Options
		c.Key, c.Run.Journal = key, filepath.Join(o.Dir, name+".jsonl")
		if say := o.Run.Progress; say != nil {
			c.Run.Progress = func(p run.Progress) {
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

// gridName returns the name of a grid's files. It includes the path if the user chose one.
func gridName(k plans.WeightKey, compute string) string {
	name := fmt.Sprintf("%s-%dx%d", k.Type, k.N, k.K)
	if compute != "" && compute != "auto" {
		name += "-" + compute
	}
	return name
}

// recordOne makes one grid. It returns no rows if the grid is complete.
func recordOne(ctx context.Context, c Options) ([]Row, error) {
	c.fill()
	shape := c.shape()
	packed := c.Run.Journal + ".gz"
	head, err := gridHead(packed)
	switch {
	case err == nil:
		if err = trials.CheckHead(head, c.journalKey(shape)); err != nil {
			err = fmt.Errorf("grid %s: %w", packed, err)
		}
		return nil, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	rows, err := Searches(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := pack(c.Run.Journal, packed); err != nil {
		return nil, fmt.Errorf("packing a grid: %w", err)
	}
	return rows, os.Remove(c.Run.Journal)
}

// gridHead returns the first line of a compressed grid.
func gridHead(path string) ([]byte, error) {
	in, err := openGrid(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head := make([]byte, maxGridLine)
	n, err := io.ReadFull(in, head)
	if err == io.EOF {
		err = trials.ErrNoJournal
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
