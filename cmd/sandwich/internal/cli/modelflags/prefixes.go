package modelflags

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/mem"
)

// PrefixStore holds the flags of a prefix store.
type PrefixStore struct {
	Dir   string
	bytes int64
	rate  int64
}

// AddDir adds the flags that name the folder and limit its size.
func (p *PrefixStore) AddDir(fs *pflag.FlagSet) {
	fs.StringVar(&p.Dir, "cache-dir", "", "folder that stores prefixes of prompts, so that they survive a restart and "+
		"other processes of this host use them (default: none)")
	flags.Bytes(fs, &p.bytes, "cache-bytes", "maximum size of --cache-dir, such as 20GiB (default: a tenth of the "+
		"free disk, at most 20GiB)")
}

// Add adds all flags.
func (p *PrefixStore) Add(fs *pflag.FlagSet) {
	p.AddDir(fs)
	flags.Bytes(fs, &p.rate, "cache-write-rate", "maximum bytes written to --cache-dir per second (default: 50MB)")
}

// Check refuses values that cannot work.
func (p *PrefixStore) Check() error {
	switch {
	case p.Dir == "" && (p.bytes != 0 || p.rate != 0):
		return errors.New("--cache-bytes and --cache-write-rate need --cache-dir; add it")
	case p.bytes < 0 || p.bytes > 0 && p.bytes < 1<<20:
		return errors.New("--cache-bytes is too small; use at least 1MiB, or leave --cache-dir out")
	case p.rate < 0 || p.rate > 0 && p.rate < 1000:
		return errors.New("--cache-write-rate is too small; use at least 1KB")
	}
	return nil
}

// Open opens the folder.
func (p *PrefixStore) Open() (*disk.Store, error) {
	if p.Dir == "" {
		return nil, errors.New("--cache-dir is missing; name the folder of the prefix store")
	}
	return disk.Open(p.Dir, disk.Options{Bytes: p.bytes, WriteRate: p.rate,
		Warn: func(text string) { show.Notice("warning: " + text) }})
}

// OpenOrWarn opens the folder if there is one, and prints what is stored there. rounding is why the
// plan is not exact, or "". A folder that cannot be used gives a warning and no store.
func (p *PrefixStore) OpenOrWarn(rounding string) *disk.Store {
	if p.Dir == "" {
		return nil
	}
	s, err := p.Open()
	if err != nil {
		show.Notice("warning: prefixes are not stored: " + err.Error())
		return nil
	}
	line := fmt.Sprintf("prefixes of prompts are stored in %s, up to %s", s.Dir(), mem.FormatBytes(s.Limit()))
	if rounding != "" {
		line += "; other machines cannot use them: " + rounding
	}
	show.Notice(line)
	return s
}
