package llm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"sandwich/topotree"
)

// Neighbor is a noisy neighbor: a process that uses a fraction of one PU's time.
type Neighbor struct {
	PU     int
	Part   float64 // fraction of the PU's time, 0 to 1
	Period time.Duration
}

// neighborPeriod is the default period in which a neighbor uses its fraction.
const neighborPeriod = 20 * time.Millisecond

// errNeighbor describes the syntax of ParseNeighbor.
var errNeighbor = errors.New("give PU:PART%, such as 1:50%, with a period if you like, 1:50%/5ms")

// ParseNeighbor parses PU:PART%[/PERIOD], such as 1:50% or 1:50%/5ms.
func ParseNeighbor(s string) (Neighbor, error) {
	n := Neighbor{Period: neighborPeriod}
	pu, rest, ok := strings.Cut(s, ":")
	if !ok {
		return n, errNeighbor
	}
	part, period, timed := strings.Cut(rest, "/")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(part, "%"), 64)
	if n.PU, ok = parsePU(pu); !ok || err != nil || !(percent > 0 && percent <= 100) {
		return n, errNeighbor
	}
	n.Part = percent / 100
	if timed {
		if n.Period, err = time.ParseDuration(period); err != nil || n.Period < 100*time.Microsecond ||
			n.Period > 10*time.Second {
			return n, errNeighbor
		}
	}
	return n, nil
}

func parsePU(s string) (int, bool) {
	pu, err := strconv.Atoi(s)
	return pu, err == nil && pu >= 0 && pu < 1<<20
}

func (n Neighbor) String() string {
	return fmt.Sprintf("%d:%g%%/%s", n.PU, 100*n.Part, n.Period)
}

// fairPart returns the fraction of the PUs' time that is left to a team with the neighbor: 0.75 if
// it uses half of one of two. A neighbor that requests more than half gets half, because the team
// always wants the PU.
func (n Neighbor) fairPart(pus topotree.CPUSet) float64 {
	if !pus.Contains(n.PU) {
		return 1
	}
	return 1 - min(n.Part, 0.5)/float64(pus.Count())
}

// NeighborProcess is a running neighbor: a process that runs Neighbor.Obey.
type NeighborProcess struct {
	neighbor Neighbor
	command  *exec.Cmd
	orders   io.WriteCloser
	answers  *bufio.Reader
}

// ErrNoNeighbor is returned if the process of a neighbor could not start.
var ErrNoNeighbor = errors.New("it cannot run there")

// StartNeighbor starts the process of a neighbor, idle at first. The command must call
// Neighbor.Obey on its standard input and output.
func StartNeighbor(n Neighbor, command *exec.Cmd) (*NeighborProcess, error) {
	p := &NeighborProcess{neighbor: n, command: command}
	var err error
	if p.orders, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(out)
	if err := command.Start(); err != nil {
		return nil, err
	}
	if _, err := p.answers.ReadString('\n'); err != nil {
		p.Stop()
		return nil, ErrNoNeighbor
	}
	return p, nil
}

// begin makes the neighbor use its fraction from now on.
func (p *NeighborProcess) begin() error {
	_, err := io.WriteString(p.orders, "begin\n")
	return err
}

// end makes the neighbor idle and returns the fraction of the PU's time that it used.
func (p *NeighborProcess) end() (float64, error) {
	if _, err := io.WriteString(p.orders, "end\n"); err != nil {
		return 0, err
	}
	line, err := p.answers.ReadString('\n')
	if err != nil {
		return 0, errors.New("the neighbor ended unexpectedly")
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// Stop ends the process.
func (p *NeighborProcess) Stop() {
	p.orders.Close()
	_ = p.command.Wait() // regardless of its exit status
}
