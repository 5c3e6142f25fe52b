package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// readsAgain annotates the verbs that take SIGHUP as the order to read their files again.
const readsAgain = "reads-again"

// endOnHangUp lets the loss of the terminal end a verb as Ctrl-C does, so that it keeps its
// results, unless the verb handles SIGHUP or runs under nohup.
func endOnHangUp(c *cobra.Command) {
	if c.Annotations[readsAgain] != "" || signal.Ignored(syscall.SIGHUP) {
		return
	}
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second one ends the program at once
	c.SetContext(ctx)
}
