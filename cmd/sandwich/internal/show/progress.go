package show

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"sandwich/runtime/mem"
)

// Watched reports whether stderr is a terminal. Progress is shown only there.
func Watched() bool { return isatty.IsTerminal(os.Stderr.Fd()) }

// ByteBar shows a progress bar of bytes on a terminal. update may be called concurrently; done
// clears the bar.
func ByteBar(what string) (update func(done, total int64), done func()) {
	if !Watched() {
		return func(int64, int64) {}, func() {}
	}
	bar := progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(Stderr()), progressbar.OptionSetDescription(Printable(what)),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30))
	return func(n, total int64) {
			if bar.GetMax64() != total {
				bar.ChangeMax64(total)
			}
			_ = bar.Set64(n)
		}, func() {
			_ = bar.Finish()
		}
}

// ByteLines prints a line to stderr for each further tenth of a number of bytes, with the rate
// since the first call of update, which may be called concurrently.
func ByteLines(what string) (update func(done, total int64), done func()) {
	l := &byteLines{what: what, print: Notice, now: time.Now}
	return l.update, func() {}
}

// byteLines prints progress as lines.
type byteLines struct {
	what    string
	print   func(line string)
	now     func() time.Time
	mu      sync.Mutex
	began   time.Time
	first   int64 // bytes at the first update
	printed int64 // tenths
}

func (l *byteLines) update(done, total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.began.IsZero() {
		l.began, l.first = now, done
	}
	if total <= 0 || 10*done/total <= l.printed {
		return
	}
	l.printed = 10 * done / total
	rate := ""
	if seconds := now.Sub(l.began).Seconds(); seconds > 0 {
		rate = fmt.Sprintf(", %s/s", mem.FormatBytes(int64(float64(done-l.first)/seconds)))
	}
	l.print(fmt.Sprintf("%s: %d %% of %s%s", l.what, 10*l.printed, mem.FormatBytes(total), rate))
}

// StepBar shows a progress bar of total equal steps on a terminal. step must not be called
// concurrently; done clears the bar.
func StepBar(what string, total int) (step, done func()) {
	if !Watched() {
		return func() {}, func() {}
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(Stderr()), progressbar.OptionSetDescription(Printable(what)),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30))
	return func() { _ = bar.Add(1) }, func() { _ = bar.Finish() }
}

// FractionBar shows a progress bar of work in any unit on a terminal, with the name of the current
// item.
func FractionBar(what string) (update func(done, total float64, now string), done func()) {
	if !Watched() {
		return func(float64, float64, string) {}, func() {}
	}
	bar := progressbar.NewOptions(1000, progressbar.OptionSetWriter(Stderr()),
		progressbar.OptionSetDescription(Printable(what)),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false))
	return func(n, total float64, now string) {
		bar.Describe(Printable(what + " " + now))
		if total > 0 {
			_ = bar.Set(int(1000 * min(n/total, 1)))
		}
	}, func() { _ = bar.Finish() }
}

// LiveLine shows one line of text on a terminal that update replaces, cut to the width of the
// terminal.
func LiveLine() (update func(text string), done func()) {
	if !Watched() {
		return func(string) {}, func() {}
	}
	return func(text string) {
			width, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil || width < 20 {
				width = 80
			}
			fmt.Fprintf(Stderr(), "\r\x1b[K%s", Clip(Printable(text), width-1))
		}, func() {
			fmt.Fprint(Stderr(), "\r\x1b[K")
		}
}

// Notice prints a line to stderr.
func Notice(line string) { fmt.Fprintln(Stderr(), Printable(line)) }
