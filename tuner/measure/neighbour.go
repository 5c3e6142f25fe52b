package measure

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Neighbour is a stranger on the machine: a process that takes a part of one PU's time.
type Neighbour struct {
	PU     int
	Part   float64 // of the PU's time, 0 to 1
	Period time.Duration
}

// neighbourPeriod is how often a neighbour takes its part where nothing else is said.
const neighbourPeriod = 20 * time.Millisecond

// errNeighbour says what ParseNeighbour reads.
var errNeighbour = errors.New("give PU:PART%, such as 1:50%, with a period if you like, 1:50%/5ms")

// ParseNeighbour reads PU:PART%[/PERIOD], such as 1:50% or 1:50%/5ms.
func ParseNeighbour(s string) (Neighbour, error) {
	n := Neighbour{Period: neighbourPeriod}
	pu, rest, ok := strings.Cut(s, ":")
	if !ok {
		return n, errNeighbour
	}
	part, period, timed := strings.Cut(rest, "/")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(part, "%"), 64)
	if n.PU, ok = parsePU(pu); !ok || err != nil || !(percent > 0 && percent <= 100) {
		return n, errNeighbour
	}
	n.Part = percent / 100
	if timed {
		if n.Period, err = time.ParseDuration(period); err != nil || n.Period < 100*time.Microsecond ||
			n.Period > 10*time.Second {
			return n, errNeighbour
		}
	}
	return n, nil
}

func parsePU(s string) (int, bool) {
	pu, err := strconv.Atoi(s)
	return pu, err == nil && pu >= 0 && pu < 1<<20
}

func (n Neighbour) String() string {
	return fmt.Sprintf("%d:%g%%/%s", n.PU, 100*n.Part, n.Period)
}

// fairPart is what is left to a team of PUs beside the neighbour: 0.75 where it takes half of one
// of two. One that wants more than half gets half where the team wants the PU all the time.
func (n Neighbour) fairPart(pus []int) float64 {
	for _, pu := range pus {
		if pu == n.PU {
			return 1 - min(n.Part, 0.5)/float64(len(pus))
		}
	}
	return 1
}

// NeighbourProcess is a running neighbour: a process that obeys Neighbour.Obey's orders.
type NeighbourProcess struct {
	neighbour Neighbour
	command   *exec.Cmd
	orders    io.WriteCloser
	answers   *bufio.Reader
}

// ErrNoNeighbour says that the process of a neighbour could not begin.
var ErrNoNeighbour = errors.New("it cannot run there")

// StartNeighbour starts the process of a neighbour, idle at first: a command that calls
// Neighbour.Obey on its standard input and output.
func StartNeighbour(n Neighbour, command *exec.Cmd) (*NeighbourProcess, error) {
	p := &NeighbourProcess{neighbour: n, command: command}
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
		return nil, ErrNoNeighbour
	}
	return p, nil
}

// begin makes it take its part from now on.
func (p *NeighbourProcess) begin() error {
	_, err := io.WriteString(p.orders, "begin\n")
	return err
}

// end makes it idle and returns the part of the PU's time that it took.
func (p *NeighbourProcess) end() (float64, error) {
	if _, err := io.WriteString(p.orders, "end\n"); err != nil {
		return 0, err
	}
	line, err := p.answers.ReadString('\n')
	if err != nil {
		return 0, errors.New("the neighbour ended unexpectedly")
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// Stop ends it.
func (p *NeighbourProcess) Stop() {
	p.orders.Close()
	_ = p.command.Wait() // whatever way it ended
}
