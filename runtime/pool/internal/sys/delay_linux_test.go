package sys

import (
	"testing"
	"time"
)

func TestParseDelay(t *testing.T) {
	if d, ok := parseDelay([]byte("667513 1234567 1\n")); !ok || d != 1234567 {
		t.Errorf("%v, %v", d, ok)
	}
	for _, text := range []string{"", "\n", "1", "1 2", "1 -2 3", "1 x 3", "1 99999999999999999999 3"} {
		if d, ok := parseDelay([]byte(text)); ok {
			t.Errorf("%q was read as %v", text, d)
		}
	}
}

// Two threads that want one PU wait for it alternately, and the kernel reports it.
func TestWaitingForACPUIsSeen(t *testing.T) {
	pus, err := AllowedPUs()
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	waited := make(chan time.Duration, 1)
	for i := range 2 {
		go OwnThread(func() { // which ends with its goroutine
			var d Delay
			if Pin(0, pus[0]) != nil {
				waited <- -1
				return
			}
			d.Open()
			defer d.Close()
			first, ok := d.Read()
			for n := 0; ok; n++ {
				if now, _ := d.Read(); i == 0 && now-first > 5*time.Millisecond {
					waited <- now - first
					return
				}
				select {
				case <-end:
					return
				default:
				}
			}
			waited <- -1
		})
	}
	defer close(end)
	select {
	case d := <-waited:
		if d < 0 {
			t.Skip("the waiting times of threads are unknown: needs a kernel with CONFIG_SCHED_INFO that binds threads")
		}
	case <-time.After(2 * time.Minute):
		t.Error("two threads shared a PU for two minutes, and the first one never waited")
	}
}
