//go:build !linux

package pool

import "time"

// delay is not known on this system.
type delay struct{}

func (*delay) open()                       {}
func (*delay) close()                      {}
func (*delay) read() (time.Duration, bool) { return 0, false }

func threadWait(int) (Wait, bool) { return Wait{}, false }

// steal is not known either.
type steal struct{}

const procStat = ""

func (*steal) open(string, int)                  {}
func (*steal) close()                            {}
func (*steal) follow(int)                        {}
func (*steal) since(time.Duration) time.Duration { return 0 }
