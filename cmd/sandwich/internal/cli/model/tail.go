package model

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
)

// tailFlags holds the flags of a target with a draft model.
type tailFlags struct {
	scale float32 // 0: no draft model
	head  int     // leading layers that are the draft model; 0: a quarter
}

func (f *tailFlags) add(fs *pflag.FlagSet) {
	fs.Float32Var(&f.scale, "tail-scale", 0, "scale what the layers after --head-layers add, such as 0.1, and also "+
		"write the first layers as a draft model, with -draft in its name")
	fs.IntVar(&f.head, "head-layers", 0, "with --tail-scale: number of layers of the draft model (default: a quarter)")
}

// check returns the number of layers of the draft model.
func (f *tailFlags) check(layers int) (int, error) {
	head := f.head
	if head == 0 {
		head = max(1, layers/4)
	}
	switch {
	case !(f.scale > 0 && f.scale <= 1):
		return 0, fmt.Errorf("--tail-scale %g is out of range; give a factor above 0 and at most 1", f.scale)
	case head < 1 || head >= layers:
		return 0, fmt.Errorf("--head-layers %d is out of range; give a number from 1 to %d", head, layers-1)
	}
	return head, nil
}

// draftFile returns the name of the draft model of a target.
func draftFile(target string) string {
	if base, ok := strings.CutSuffix(target, ".gguf"); ok {
		return base + "-draft.gguf"
	}
	return target + "-draft"
}

// write writes a model with random weights.
func write(ctx context.Context, out string, c model.Config, t synth.FileType, seed uint64, tail synth.Tail) error {
	update, done := show.ByteBar("writing " + out)
	defer done()
	return outfile.Write(ctx, out, func(w io.Writer) error {
		return synth.WriteTail(ctx, gguf.NewWriter(w), c, t, seed, tail, update)
	})
}
