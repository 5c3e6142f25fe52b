//go:build !linux

package sys

import "time"

// Delay is not known on this system.
type Delay struct{}

func (*Delay) Open()                       {}
func (*Delay) Close()                      {}
func (*Delay) Read() (time.Duration, bool) { return 0, false }

// ThreadWait is not known on this system.
func ThreadWait(int) (ran, waited time.Duration, ok bool) { return 0, 0, false }

// Steal is not known on this system.
type Steal struct{}

const ProcStat = ""

func (*Steal) Open(string, int)                  {}
func (*Steal) Close()                            {}
func (*Steal) Follow(int)                        {}
func (*Steal) Since(time.Duration) time.Duration { return 0 }
