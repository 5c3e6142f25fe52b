package serve

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/pool"
	"sandwich/runtime/session"
)

// dumpLogits writes one line of JSON and then the logits after every position of the prompt, as
// little-endian float32. A regular file appears when it is complete. limit is the largest number of
// tokens of a sequence.
func dumpLogits(ctx context.Context, s *session.Session, prompt []int32, limit int, path string) error {
	file, err := outfile.Create(ctx, path)
	if err != nil {
		return err
	}
	defer file.Abort()
	w := bufio.NewWriterSize(file, 1<<20)
	fmt.Fprintf(w, "{\"vocab\":%d,\"positions\":%d}\n", s.Shape.Vocab, len(prompt))
	rows := min(modelflags.LogitRows, s.Plan.Chunk)
	err = s.WithRunner(ctx, len(prompt), limit, rows, func(r *forward.Runner, l *pool.Leader) error {
		var row []byte
		return engine.NewSequence(r, l).Feed(prompt, rows, engine.AllLogits, func(_ int, logits []float32) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			row = row[:0]
			for _, v := range logits {
				row = binary.LittleEndian.AppendUint32(row, math.Float32bits(v))
			}
			_, err := w.Write(row)
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Commit()
}
