// Command sandwich probes a machine, tunes a plan for a model on it, and serves the model with that
// plan.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sandwich/cmd/sandwich/internal/cli/root"
)

func main() {
	root.DelayFirstGC()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // a second Ctrl-C ends the program at once
	code := root.Run(ctx, os.Args[1:], verbs()...)
	cancel()
	os.Exit(code)
}
