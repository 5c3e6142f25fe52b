package prefixes

import (
	"context"
	"slices"
	"time"

	"sandwich/internal/num"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache/disk"
)

// LoopOptions configures Loop.
type LoopOptions struct {
	Open           Open
	Dir            string        // of the store
	Delay          time.Duration // before each access to a file
	Prompt, Tokens int           // of a sample
	Pairs          int
	Vocab          int
	Step           func() // is called Pairs times
}

// LoopRow compares the times between tokens without a store, and with one that writes the prompt to
// slow files meanwhile. Its JSON is stable. Times are in seconds.
type LoopRow struct {
	Pairs   int     `json:"pairs"`
	Tokens  int     `json:"tokens"` // of a sample
	Delay   float64 `json:"delay_seconds"`
	Plain   float64 `json:"median_seconds"`
	Cached  float64 `json:"cached_median_seconds"`
	Ratio   float64 `json:"median_ratio"`
	P99     float64 `json:"p99_seconds"`
	Again   float64 `json:"p99_again_seconds"` // of the second samples without a store
	Late    float64 `json:"cached_p99_seconds"`
	Same    float64 `json:"p99_ratio_same"`  // Again / P99
	Tail    float64 `json:"p99_ratio"`       // Late / P99
	Written int64   `json:"written_objects"` // meanwhile and after the samples
	Model   string  `json:"model"`
	Plan    string  `json:"plan"`
	KV      string  `json:"kv"`
	CPU     string  `json:"cpu"`
}

// Loop measures pairs of samples, each followed by one more sample without a store. The order
// rotates, so that changes of the machine affect all three.
func Loop(ctx context.Context, o LoopOptions) (*LoopRow, error) {
	plain, err := o.Open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	store, err := disk.Open(o.Dir, disk.Options{WriteRate: -1, Bytes: 1 << 40,
		Files: delayed{disk.HostFiles(), o.Delay}})
	if err != nil {
		return nil, err
	}
	cached, err := o.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	defer cached.Close()
	if cached.Prefixes() == nil {
		return nil, errNoStore
	}
	arms := [3]*engine.Engine{plain, cached, plain}
	var gaps [3][]float64
	for pair := range o.Pairs + 1 { // the first one warms up
		for i := range arms {
			arm := (i + pair) % len(arms)
			prompt := randomTokens(uint64(pair*len(arms)+i), o.Prompt, o.Vocab)
			a, err := generate(ctx, arms[arm], prompt, o.Tokens, arms[arm] == cached)
			if err != nil {
				return nil, err
			}
			if pair > 0 {
				gaps[arm] = append(gaps[arm], a.gaps...)
			}
			if arms[arm] == cached { // the other arms run without writes
				if err := cached.Prefixes().Flush(ctx); err != nil {
					return nil, err
				}
			}
		}
		o.Step()
	}
	for i := range gaps {
		slices.Sort(gaps[i])
	}
	row := &LoopRow{Pairs: o.Pairs, Tokens: o.Tokens, Delay: o.Delay.Seconds(),
		Plain: num.Quantile(gaps[0], 0.5), Cached: num.Quantile(gaps[1], 0.5), P99: num.Quantile(gaps[0], 0.99),
		Again: num.Quantile(gaps[2], 0.99), Late: num.Quantile(gaps[1], 0.99),
		Written: cached.Stats().Prefixes.WrittenObjects}
	row.Ratio, row.Same, row.Tail = row.Cached/row.Plain, row.Again/row.P99, row.Late/row.P99
	return row, nil
}

// delayed are files that take time.
type delayed struct {
	disk.Files
	delay time.Duration
}

func (d delayed) Create(path string) (disk.File, error) {
	time.Sleep(d.delay)
	f, err := d.Files.Create(path)
	if err != nil {
		return nil, err
	}
	return delayedFile{f, d.delay}, nil
}

func (d delayed) Open(path string) (disk.File, error) {
	time.Sleep(d.delay)
	f, err := d.Files.Open(path)
	if err != nil {
		return nil, err
	}
	return delayedFile{f, d.delay}, nil
}

type delayedFile struct {
	disk.File
	delay time.Duration
}

func (f delayedFile) Write(p []byte) (int, error) {
	time.Sleep(f.delay)
	return f.File.Write(p)
}

func (f delayedFile) ReadAt(p []byte, at int64) (int, error) {
	time.Sleep(f.delay)
	return f.File.ReadAt(p, at)
}

func (f delayedFile) Sync() error {
	time.Sleep(f.delay)
	return f.File.Sync()
}
