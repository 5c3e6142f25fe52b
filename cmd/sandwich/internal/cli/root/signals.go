package root

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// ReloadsOnHangUp annotates verbs that reload files on SIGHUP.
const ReloadsOnHangUp = "reads-again"

// endOnHangUp cancels the context of a verb on SIGHUP, as Ctrl-C does, so that the verb keeps its
// results when the terminal closes. It has no effect on verbs that handle SIGHUP or run under
// nohup.
func endOnHangUp(c *cobra.Command) {
	if c.Annotations[ReloadsOnHangUp] != "" || signal.Ignored(syscall.SIGHUP) {
		return
	}
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second one ends the program at once
	c.SetContext(ctx)
}
