package slurm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// machine describes the processors of a guest: fields of testguest.Machine.
type machine struct {
	Arch                                           string
	Nodes, CPUsPerNode, ThreadsPerCore, MiBPerNode int
	KVM                                            bool
	CPU, Tap                                       string
	Shares                                         []share
}

// share is testguest.Share.
type share struct {
	Tag, Folder, At string
	Write           bool
}

// machines are the guests, by the number of their node. The last one has no plan.
var machines = []machine{
	{Nodes: 1, CPUsPerNode: 2, ThreadsPerCore: 1, MiBPerNode: 1024},
	{Nodes: 2, CPUsPerNode: 2, ThreadsPerCore: 1, MiBPerNode: 640},
	{Nodes: 1, CPUsPerNode: 4, ThreadsPerCore: 2, MiBPerNode: 1024, CPU: "-avx512f,model-id=Another CPU"},
	{Nodes: 1, CPUsPerNode: 3, ThreadsPerCore: 1, MiBPerNode: 1024},
}

// fourth is the feature of the node without a plan.
const fourth = "sandwich_kind_d"

// controller is the address of this machine for the guests.
const controller = "10.77.0.1"

func guestAddress(i int) string { return fmt.Sprintf("10.77.0.%d", 10+i) }

// guests is a cluster whose nodes are guests of different topologies.
type guests struct {
	*jobs
	boot, init string // programs that make test-slurm-guests builds
	running    []*guest
}

// guest is a guest that was started.
type guest struct {
	*exec.Cmd
	ended chan struct{} // closed when it has
}

// end ends the guest.
func (g *guest) end() {
	_ = g.Process.Signal(os.Interrupt)
	<-g.ended
}

// startGuests starts a controller on this machine and a guest for each kind. It skips the test
// where that is impossible.
func startGuests(t *testing.T) *guests {
	t.Helper()
	programs := filepath.Join(root(t), "bin", "guests")
	g := &guests{jobs: &jobs{cluster: newCluster(t)}, boot: filepath.Join(programs, "boot"),
		init: filepath.Join(programs, "init"), running: make([]*guest, len(machines))}
	g.patience = 20 * time.Minute
	if _, err := os.Stat(g.boot); err != nil {
		t.Skip("no guest was run: make test-slurm-guests builds its programs")
	}
	if os.Getenv(inNamespaces) == "" {
		t.Skip("no guest was run: unshare and ip cannot make a network namespace here")
	}
	hosts := "127.0.0.1 localhost\n" + controller + " " + g.hostname() + "\n"
	var nodes []string
	for i, m := range machines {
		g.writeMachine(i)
		hosts += guestAddress(i) + " " + node(i) + "\n"
		nodes = append(nodes, fmt.Sprintf("NodeName=%s NodeAddr=%s Sockets=%d CoresPerSocket=%d ThreadsPerCore=%d "+
			"RealMemory=512 Feature=%s", node(i), guestAddress(i), m.Nodes, m.CPUsPerNode/m.ThreadsPerCore,
			m.ThreadsPerCore, append(kinds, fourth)[i]))
	}
	if missing := g.run(g.boot, "-check", g.path(node(0)+".json")); missing != "" {
		t.Skip("no guest was run: " + missing)
	}
	g.write("hosts", []byte(hosts), 0o644)
	g.write("cgroup.conf", []byte("IgnoreSystemd=yes\n"), 0o644) // guests have none
	g.addTap(0)
	g.control(controller, nodes)
	for i := range kinds {
		g.start(i)
	}
	for i := range kinds {
		g.awaitGuest(i)
	}
	return g
}

// writeMachine writes the description of a guest. Its root is that of this machine, without write
// access; the folder of the jobs is shared.
func (g *guests) writeMachine(i int) {
	g.t.Helper()
	m := machines[i]
	m.Arch, m.KVM, m.Tap = "amd64", true, fmt.Sprint("tap", i)
	m.Shares = []share{{"root", "/", "/", false}, {"jobs", g.dir, g.dir, true}}
	text, err := json.Marshal(m)
	if err != nil {
		g.t.Fatal(err)
	}
	g.write(node(i)+".json", text, 0o644)
}

// addTap makes the network interface between this machine and a guest.
func (g *guests) addTap(i int) {
	g.t.Helper()
	tap := fmt.Sprint("tap", i)
	for _, args := range []string{"tuntap add dev " + tap + " mode tap",
		"addr add " + controller + " peer " + guestAddress(i) + " dev " + tap, "link set " + tap + " up"} {
		g.run("ip", strings.Fields(args)...)
	}
}

// start boots a guest and starts slurmd in it.
func (g *guests) start(i int) {
	g.t.Helper()
	if i > 0 {
		g.addTap(i)
	}
	name := node(i)
	script := fmt.Sprintf(`exec >%[1]s/%[2]s.log 2>&1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
set -eux
hostname %[2]s
mount --bind %[1]s/hosts /etc/hosts
ip addr add %[3]s peer %[4]s dev eth0
ip link set eth0 up
mkdir -p %[5]s/%[2]s.spool /sys/fs/cgroup/system.slice
munged %[6]s
# The inner shell reaps orphans of jobs; slurmstepd waits for zombies, too.
exec unshare --mount --pid --fork --mount-proc sh -c 'slurmd -D -N %[2]s -f %[1]s/slurm.conf; exit $?'
`, g.dir, name, guestAddress(i), controller, g.local, strings.Join(g.munge(), " "))
	g.write(name+".sh", []byte(script), 0o644)
	console, err := os.Create(g.path(name + ".console"))
	if err != nil {
		g.t.Fatal(err)
	}
	vm := &guest{exec.Command(g.boot, "-init", g.init, g.path(name+".json"), "/bin/sh", g.path(name+".sh")),
		make(chan struct{})}
	vm.Stdout, vm.Stderr = console, console
	if err := vm.Start(); err != nil {
		g.t.Fatal(err)
	}
	go func() {
		_ = vm.Wait()
		console.Close()
		close(vm.ended)
	}()
	g.running[i] = vm
	g.t.Cleanup(func() {
		vm.end()
		if g.t.Failed() {
			g.t.Logf("%s:\n%s%s", name, g.read(name+".log"), g.read(name+".console"))
		}
	})
}

// awaitGuest returns when the node of a guest is idle.
func (g *guests) awaitGuest(i int) {
	g.t.Helper()
	g.await(node(i)+" is idle", func() bool {
		select {
		case <-g.running[i].ended:
			g.t.Fatalf("the guest of %s ended", node(i))
		default:
		}
		return g.idle(node(i))
	})
}

// submit submits a script for a kind and returns the number of the job.
func (g *guests) submit(kind string, args ...string) string {
	g.t.Helper()
	return g.run("sbatch", append([]string{"--parsable", "--constraint=" + kind}, args...)...)
}
