// Package daemon starts programs that run until the test ends.
package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Daemon is a program that runs in the background.
type Daemon struct {
	name, log string
	ended     chan struct{} // closed when the program has ended
	err       error         // of the end
}

// Start starts a program that writes to LOGS/NAME.log.
func Start(cmd *exec.Cmd, logs, name string) (*Daemon, error) {
	d := &Daemon{name: name, log: filepath.Join(logs, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Start()
	log.Close()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		d.err = cmd.Wait()
		close(d.ended)
	}()
	return d, nil
}

// Ended returns a channel that is closed when the program has ended.
func (d *Daemon) Ended() <-chan struct{} { return d.ended }

// Err returns an error with the end of the log if the program has ended.
func (d *Daemon) Err() error {
	select {
	case <-d.ended:
		return fmt.Errorf("%s ended (%v): %s", d.name, d.err, Tail(d.log))
	default:
		return nil
	}
}

// Tail returns the end of a log.
func Tail(path string) string {
	const most = 4000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Await polls until an event has happened. It returns an error if one of the daemons ends before or
// if the event does not happen within five minutes.
func Await(event string, daemons []*Daemon, happened func() bool) error {
	for end := time.Now().Add(5 * time.Minute); !happened(); time.Sleep(100 * time.Millisecond) {
		for _, d := range daemons {
			if err := d.Err(); err != nil {
				return err
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("it never happened that %s", event)
		}
	}
	return nil
}
