package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// neighbour is a stranger on the machine: a process that takes a part of one PU's time.
type neighbour struct {
	pu     int
	part   float64 // of the PU's time, 0 to 1
	period time.Duration
}

// neighbourPeriod is how often a neighbour takes its part where nothing else is said.
const neighbourPeriod = 20 * time.Millisecond

// parseNeighbour reads PU:PART%[/PERIOD], such as 1:50% or 1:50%/5ms.
func parseNeighbour(s string) (neighbour, error) {
	n := neighbour{period: neighbourPeriod}
	wrong := fmt.Errorf("--neighbour %s: give PU:PART%%, such as 1:50%%, with a period if you like, 1:50%%/5ms",
		clip(s, 40))
	pu, rest, ok := strings.Cut(s, ":")
	if !ok {
		return n, wrong
	}
	part, period, timed := strings.Cut(rest, "/")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(part, "%"), 64)
	if n.pu, ok = parsePU(pu); !ok || err != nil || !(percent > 0 && percent <= 100) {
		return n, wrong
	}
	n.part = percent / 100
	if timed {
		if n.period, err = time.ParseDuration(period); err != nil || n.period < 100*time.Microsecond ||
			n.period > 10*time.Second {
			return n, wrong
		}
	}
	return n, nil
}

func parsePU(s string) (int, bool) {
	pu, err := strconv.Atoi(s)
	return pu, err == nil && pu >= 0 && pu < 1<<20
}

func (n neighbour) String() string {
	return fmt.Sprintf("%d:%g%%/%s", n.pu, 100*n.part, n.period)
}

// fairPart is what is left to a team of PUs beside the neighbour: 0.75 where it takes half of one
// of two. One that wants more than half gets half where the team wants the PU all the time.
func (n neighbour) fairPart(pus []int) float64 {
	for _, pu := range pus {
		if pu == n.pu {
			return 1 - min(n.part, 0.5)/float64(len(pus))
		}
	}
	return 1
}

// neighbourProcess is the running neighbour: a child of this program that ends with it.
type neighbourProcess struct {
	command *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
}

// start starts the neighbour, idle at first.
func (n neighbour) start(ctx context.Context) (*neighbourProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &neighbourProcess{command: exec.CommandContext(ctx, self, "neighbour", n.String())}
	p.command.Stderr = os.Stderr
	if p.orders, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if _, err := p.answers.ReadString('\n'); err != nil {
		p.stop()
		return nil, usageError(fmt.Errorf("--neighbour %s: it cannot run there", n))
	}
	return p, nil
}

// begin makes it take its part from now on.
func (p *neighbourProcess) begin() error {
	_, err := io.WriteString(p.orders, "begin\n")
	return err
}

// end makes it idle and returns the part of the PU's time that it took.
func (p *neighbourProcess) end() (float64, error) {
	if _, err := io.WriteString(p.orders, "end\n"); err != nil {
		return 0, err
	}
	line, err := p.answers.ReadString('\n')
	if err != nil {
		return 0, errors.New("the neighbour ended unexpectedly")
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

func (p *neighbourProcess) stop() {
	p.orders.Close()
	_ = p.command.Wait() // whatever way it ended
}
