package slurm

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kinds are the features of the nodes, one node each.
var kinds = []string{"sandwich_kind_a", "sandwich_kind_b", "sandwich_kind_c"}

// cluster is a running Slurm cluster.
type cluster struct {
	t     *testing.T
	dir   string // of the jobs; nodes in guests share it
	local string // of the daemons; nodes in guests have their own
	env   []string
	// patience bounds the time that an event takes.
	patience time.Duration
}

// startCluster starts a controller and a node of each kind on this machine, with a munge of their
// own. It skips the test where that is impossible.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.patience = 10 * time.Minute
	var nodes []string
	for i, kind := range kinds {
		nodes = append(nodes, fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=8 "+
			"RealMemory=64000 Feature=%s", node(i), c.hostname(), freePort(t), kind))
	}
	c.control("127.0.0.1", append(nodes, "SlurmdParameters=config_overrides"))
	for i := range kinds {
		c.daemon("slurmd", "-D", "-N", node(i))
		c.await(node(i)+" is idle", func() bool { return c.idle(node(i)) })
	}
	return c
}

// newCluster returns a cluster without processes. It skips the test where Slurm is missing.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	for _, tool := range []string{"munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: apt-get install slurm-wlm munge curl", tool)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd needs root")
	}
	c := &cluster{t: t}
	for _, dir := range []*string{&c.dir, &c.local} {
		var err error
		// munge refuses a socket below folders that others can write. Guests have a /tmp of their own.
		if *dir, err = os.MkdirTemp("/tmp", "slurm"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(*dir) })
		if err := os.Chmod(*dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.env = append(os.Environ(), "SLURM_CONF="+c.path("slurm.conf"))
	return c
}

// control starts munge and the controller, at an address for the nodes. nodes are further lines of
// slurm.conf.
func (c *cluster) control(address string, nodes []string) {
	c.t.Helper()
	key := make([]byte, 1024)
	if _, err := rand.Read(key); err != nil {
		c.t.Fatal(err)
	}
	c.write("key", key, 0o400)
	c.write("slurm.conf", []byte(c.config(address, nodes)), 0o644)
	c.daemon("munged", append([]string{"--foreground"}, c.munge()...)...)
	c.await("munged answers", func() bool { _, err := os.Stat(c.local + "/sock"); return err == nil })
	c.daemon("slurmctld", "-D", "-c")
}

// munge returns the arguments of munged.
func (c *cluster) munge() []string {
	return []string{"--force", "--key-file=" + c.path("key"), "--socket=" + c.local + "/sock",
		"--pid-file=" + c.local + "/munged.pid", "--log-file=" + c.local + "/munged.log",
		"--seed-file=" + c.local + "/seed"}
}

// idle reports whether a node is idle.
func (c *cluster) idle(node string) bool {
	c.t.Helper()
	return c.run("sinfo", "-h", "-n", node, "-t", "idle", "-o", "%N") == node
}

func (c *cluster) hostname() string {
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	return host
}

func node(i int) string { return fmt.Sprintf("node-%d", i) }

// config returns slurm.conf.
func (c *cluster) config(address string, nodes []string) string {
	return fmt.Sprintf(`ClusterName=test
SlurmctldHost=%[1]s(%[2]s)
SlurmctldPort=%[4]d
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=%[3]s/sock
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/%%n.spool
SlurmdPidFile=%[3]s/%%n.pid
SlurmctldPidFile=%[3]s/slurmctld.pid
KillWait=60
MessageTimeout=60
SlurmdTimeout=0
UnkillableStepTimeout=600
%[5]s
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
`, c.hostname(), address, c.local, freePort(c.t), strings.Join(nodes, "\n"))
}

// nextPort is the next port to try, below those that the system gives to connections.
var nextPort = 20000 + os.Getpid()%10000

// freePort returns a port of the loopback addresses that nothing uses, another one at each call.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		nextPort++
		if l, err := net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", nextPort)); err == nil {
			l.Close()
			return nextPort
		}
	}
	t.Fatal("no port is free")
	return 0
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) write(name string, data []byte, mode os.FileMode) {
	c.t.Helper()
	if err := os.WriteFile(c.path(name), data, mode); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) read(name string) string {
	data, err := os.ReadFile(c.path(name))
	if err != nil {
		return ""
	}
	return string(data)
}

// daemon starts a daemon that ends with the test. The test is skipped if it does not run here.
func (c *cluster) daemon(name string, args ...string) {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, &out, &out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		c.t.Skipf("%s does not run here: %v\n%s", name, err, &out)
	case <-time.After(time.Second):
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
		}
	})
}

// run returns the output of a command of the cluster.
func (c *cluster) run(name string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// await polls for an event. It fails the test if it does not come within the cluster's patience.
func (c *cluster) await(event string, happened func() bool) {
	c.t.Helper()
	if !c.comes(happened) {
		c.t.Fatalf("after %s it has not happened that %s", c.patience, event)
	}
}

// comes polls for an event and reports whether it comes within the cluster's patience.
func (c *cluster) comes(happened func() bool) bool {
	for end := time.Now().Add(c.patience); !happened(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// awaitJobs returns when no job waits or runs.
func (c *cluster) awaitJobs() {
	c.t.Helper()
	var running string
	ended := func() bool { running = c.run("squeue", "-h", "-o", "%i %T %r %M %N"); return running == "" }
	if !c.comes(ended) {
		c.t.Fatalf("jobs still wait or run:\n%s\n%s", running, c.logs())
	}
}

// logs returns the last lines of what the tasks wrote.
func (c *cluster) logs() string {
	c.t.Helper()
	files, err := filepath.Glob(c.path("*.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	var text strings.Builder
	for _, file := range files {
		name := filepath.Base(file)
		log := c.read(name)
		fmt.Fprintf(&text, "%s: %s\n", name, log[max(0, len(log)-1000):])
	}
	return text.String()
}
