package show

import (
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Watched says whether a person watches: progress goes to stderr and only to a terminal.
func Watched() bool { return isatty.IsTerminal(os.Stderr.Fd()) }

// ByteBar shows a bar over bytes; without a terminal it shows nothing. The returned function
// may be called from several goroutines; done clears the bar.
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

// StepBar shows a bar over total steps of equal weight; step is called from one goroutine.
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

// FractionBar shows a bar over work in any unit, with what is at work now.
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

// LiveLine keeps one line of text up to date, cut to the width of the terminal.
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

// Notice says on stderr what a person should know about the run.
func Notice(line string) { fmt.Fprintln(Stderr(), Printable(line)) }
