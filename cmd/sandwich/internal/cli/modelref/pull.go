package modelref

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/netguard"
	"sandwich/cmd/sandwich/internal/models/pull"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
	"sandwich/cmd/sandwich/internal/models/store"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model/arch"
)

// Options are those of a pull that the user chooses.
type Options struct {
	Name        string
	SHA256      string
	Hosts       []string
	Connections int
	Confirm     func(host string, bytes int64) error
}

// Pull downloads the model of a reference, unless the current version is installed, and shows the
// progress on stderr.
func Pull(ctx context.Context, r ref.Ref, o Options) (*store.Store, *store.Model, error) {
	s, err := OpenStore()
	if err != nil {
		return nil, nil, err
	}
	m, err := pull.Pull(ctx, s, r, pull.Options{Name: o.Name, SHA256: o.SHA256, Hosts: o.Hosts,
		Connections: o.Connections, Confirm: o.Confirm, Notice: show.Notice, Progress: progress, Inspect: inspect})
	if err != nil {
		return nil, nil, coded(err)
	}
	return s, m, nil
}

// cached installs the model of a reference from the caches of other programs.
func cached(ctx context.Context, s *store.Store, r ref.Ref) (*store.Model, error) {
	return pull.Cached(ctx, s, r, pull.Options{Notice: show.Notice, Progress: progress, Inspect: inspect})
}

// coded gives an error the exit code of unusable input if it is about the reference or the content
// of the file. Other errors, such as a server that does not answer or a full disk, are failures.
func coded(err error) error {
	var guard *netguard.Error
	var status *fetch.StatusError
	var refused *source.RefusedError
	switch {
	case errors.Is(err, fetch.ErrChecksum), errors.Is(err, fetch.ErrContent), errors.Is(err, source.ErrNotFound),
		errors.Is(err, gguf.ErrDamaged), errors.Is(err, gguf.ErrUnsupported), errors.As(err, &guard), errors.As(err,
			&refused),
		errors.As(err, &status) && (status.Code == 404 || status.Denied()):
		return exit.Usage(err)
	}
	return exit.With(exit.Failed, err)
}

// progress shows the progress of a download: a bar on a terminal, else lines.
func progress(what string) (update func(done, total int64), done func()) {
	if show.Watched() {
		return show.ByteBar(what)
	}
	return show.ByteLines(what)
}

// inspect rejects a file that is not a sound GGUF file, and prints a warning if this program does
// not run its architecture.
func inspect(path string) error {
	f, err := gguf.Look(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := arch.ConfigOf(f); err != nil {
		show.Notice(fmt.Sprintf("warning: sandwich does not run this model: %v", err))
	}
	return nil
}

// interactive reports whether the user can be asked.
func interactive() bool { return show.Watched() && isatty.IsTerminal(os.Stdin.Fd()) }

// ask asks the user on a terminal whether to download.
func ask(host string, bytes int64) error { return askOn(os.Stdin, show.Stderr(), host, bytes) }

func askOn(in io.Reader, out io.Writer, host string, bytes int64) error {
	size := "a file of unknown size"
	if bytes > 0 {
		size = mem.FormatBytes(bytes)
	}
	fmt.Fprintf(out, "download %s from %s? [Y/n] ", size, show.Printable(host))
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil || !isYes(line) {
		return errors.New("the download was declined")
	}
	return nil
}
