package main

import (
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// stderrIsTerminal says whether a person watches: progress goes to stderr and only to a terminal.
func stderrIsTerminal() bool { return isatty.IsTerminal(os.Stderr.Fd()) }

// byteProgress shows a bar over bytes; without a terminal it shows nothing. The returned function
// may be called from several goroutines; done clears the bar.
func byteProgress(what string) (update func(done, total int64), done func()) {
	if !stderrIsTerminal() {
		return func(int64, int64) {}, func() {}
	}
	bar := progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(printable(what)),
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

// countProgress shows a bar over total steps of equal weight; step is called from one goroutine.
func countProgress(what string, total int) (step, done func()) {
	if !stderrIsTerminal() {
		return func() {}, func() {}
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(printable(what)),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30))
	return func() { _ = bar.Add(1) }, func() { _ = bar.Finish() }
}

// fractionProgress shows a bar over work in any unit, with what is at work now.
func fractionProgress(what string) (update func(done, total float64, now string), done func()) {
	if !stderrIsTerminal() {
		return func(float64, float64, string) {}, func() {}
	}
	bar := progressbar.NewOptions(1000, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(printable(what)),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false))
	return func(n, total float64, now string) {
		bar.Describe(printable(what + " " + now))
		if total > 0 {
			_ = bar.Set(int(1000 * min(n/total, 1)))
		}
	}, func() { _ = bar.Finish() }
}

// lineProgress keeps one line of text up to date, cut to the width of the terminal.
func lineProgress() (update func(text string), done func()) {
	if !stderrIsTerminal() {
		return func(string) {}, func() {}
	}
	return func(text string) {
			width, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil || width < 20 {
				width = 80
			}
			fmt.Fprintf(os.Stderr, "\r\x1b[K%s", clip(printable(text), width-1))
		}, func() {
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		}
}
