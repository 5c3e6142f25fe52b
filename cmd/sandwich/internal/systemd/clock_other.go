//go:build !linux

package systemd

// monotonic returns 0: systemd runs on Linux only.
func monotonic() int64 { return 0 }
