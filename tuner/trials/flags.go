package trials

import (
	"fmt"
	"time"
)

// Flags has every option that affects the measurements of a run.
type Flags struct {
	Threads, TP      int
	ISA, Compute     string
	KV, Attention    string
	SeqMax, BatchMax int
	Budget           time.Duration
	Effort, Strategy string
	TopK             int
	AllowTP          bool
	Load, Objective  string
}

// String returns the flags as a journal's key has them.
func (f Flags) String() string {
	return fmt.Sprintf("threads=%d tp=%d isa=%s compute=%s kv=%s attention=%s seq-max=%d batch-max=%d budget=%s "+
		"effort=%s strategy=%s top-k=%d allow-tp=%v load=%q objective=%s", f.Threads, f.TP, f.ISA, f.Compute, f.KV,
		f.Attention, f.SeqMax, f.BatchMax, f.Budget, f.Effort, f.Strategy, f.TopK, f.AllowTP, f.Load, f.Objective)
}
