package prefixes

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/kvcache/disk"
)

// RestartOptions configures Restart.
type RestartOptions struct {
	Open   Open
	Dir    string // of the store
	Tokens int    // of the prompt
	Vocab  int
	Step   func() // is called RestartSteps times
}

// RestartSteps is the number of steps of Restart.
const RestartSteps = 3

// RestartRow compares the first token of a prompt that is loaded after a restart with one that is
// computed. Its JSON is stable. Times are in seconds.
type RestartRow struct {
	Tokens   int     `json:"tokens"`
	Loaded   int     `json:"loaded_tokens"`
	Bytes    int64   `json:"bytes"`                 // that were loaded
	Rate     float64 `json:"read_bytes_per_second"` // measured on the same files by plain reads
	Dropped  bool    `json:"pages_dropped"`         // from the page cache before the load
	Computed float64 `json:"computed_first_token_seconds"`
	First    float64 `json:"loaded_first_token_seconds"`
	Load     float64 `json:"load_seconds"`  // part of First that read the blocks
	Bound    float64 `json:"bound_seconds"` // 1.25 x bytes / rate + 0.3 s
	Share    float64 `json:"share"`         // of First in Computed
	Interval int     `json:"state_interval_tokens"`
	Equal    bool    `json:"equal"` // log probabilities have the same bits
	Model    string  `json:"model"`
	Plan     string  `json:"plan"`
	KV       string  `json:"kv"`
	CPU      string  `json:"cpu"`
}

// compared is the number of generated tokens that are compared.
const compared = 4

// Restart computes a prompt with an engine that stores it, closes the engine, drops the files from
// the page cache, and answers the prompt with a new engine.
func Restart(ctx context.Context, o RestartOptions) (*RestartRow, error) {
	row, prompt := &RestartRow{Tokens: o.Tokens}, randomTokens(1, o.Tokens, o.Vocab)
	computed, err := o.compute(ctx, row, prompt)
	if err != nil {
		return nil, err
	}
	o.Step()
	files, err := filesOf(o.Dir)
	if err != nil {
		return nil, err
	}
	drop(files)
	if row.Rate, err = readRate(ctx, files); err != nil {
		return nil, err
	}
	o.Step()
	store, err := disk.Open(o.Dir, disk.Options{WriteRate: -1})
	if err != nil {
		return nil, err
	}
	e, err := o.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	row.Dropped = drop(files)
	loaded, err := generate(ctx, e, prompt, compared, false)
	if err != nil {
		return nil, err
	}
	o.Step()
	row.Loaded, row.Bytes = loaded.CachedTokens, e.Stats().Prefixes.ReadBytes
	row.Computed, row.First = computed.first.Seconds(), loaded.first.Seconds()
	row.Load = e.Stats().Prefixes.LoadTime.Seconds()
	row.Bound = 1.25*float64(row.Bytes)/row.Rate + 0.3
	row.Share, row.Equal = row.First/row.Computed, slices.Equal(computed.bits, loaded.bits)
	return row, nil
}

// compute computes the prompt and stores it.
func (o *RestartOptions) compute(ctx context.Context, row *RestartRow, prompt []int32) (a answer, err error) {
	store, err := disk.Open(o.Dir, disk.Options{WriteRate: -1, Bytes: 1 << 40})
	if err != nil {
		return a, err
	}
	e, err := o.Open(ctx, store)
	if err != nil {
		return a, err
	}
	defer e.Close()
	if e.Prefixes() == nil {
		return a, errNoStore
	}
	if a, err = generate(ctx, e, prompt, compared, true); err != nil {
		return a, err
	}
	row.Interval = e.Prefixes().Interval(len(prompt))
	return a, e.Prefixes().Flush(ctx)
}

// filesOf lists the objects of a store.
func filesOf(dir string) (list []string, err error) {
	list, err = filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
	if err == nil && len(list) == 0 {
		err = errors.New("nothing was stored: the disk or --dir has no room, or --tokens is below 65")
	}
	return list, err
}

// readers is the number of files that are read at a time, as by a load.
const readers = 4

// readRate reads files and returns the bytes per second.
func readRate(ctx context.Context, files []string) (float64, error) {
	var next, total atomic.Int64
	var group sync.WaitGroup
	var errs [readers]error
	began := time.Now()
	for r := range readers {
		group.Go(func() {
			buf := make([]byte, 1<<20)
			for i := next.Add(1) - 1; i < int64(len(files)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				n, err := readFile(files[i], buf)
				if err != nil {
					errs[r] = err
					return
				}
				total.Add(n)
			}
		})
	}
	group.Wait()
	return float64(total.Load()) / time.Since(began).Seconds(), errors.Join(append(errs[:], ctx.Err())...)
}

// readFile reads a file and returns its size.
func readFile(path string, buf []byte) (size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for {
		n, err := f.Read(buf)
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}
