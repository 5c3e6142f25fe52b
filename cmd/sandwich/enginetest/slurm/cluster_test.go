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
	t   *testing.T
	dir string
	env []string
}

// startCluster starts a controller and a node of each kind on this machine, with a munge of their
// own. It skips the test where that is impossible.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	for _, tool := range []string{"munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: apt-get install slurm-wlm munge curl", tool)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd needs root")
	}
	dir, err := os.MkdirTemp("", "slurm") // munge refuses a socket below folders that others can write
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cluster{t: t, dir: dir, env: append(os.Environ(), "SLURM_CONF="+filepath.Join(dir, "slurm.conf"))}
	key := make([]byte, 1024)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	c.write("key", key, 0o400)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c.daemon("munged", "--foreground", "--force", "--key-file="+c.path("key"), "--socket="+c.path("sock"),
		"--pid-file="+c.path("munged.pid"), "--log-file="+c.path("munged.log"), "--seed-file="+c.path("seed"))
	c.await("munged answers", func() bool { _, err := os.Stat(c.path("sock")); return err == nil })
	c.write("slurm.conf", []byte(c.config()), 0o644)
	c.daemon("slurmctld", "-D", "-c")
	for i := range kinds {
		c.daemon("slurmd", "-D", "-N", node(i))
	}
	c.await("the nodes are idle", func() bool {
		return strings.Count(c.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N"), "node-") == len(kinds)
	})
	return c
}

func node(i int) string { return fmt.Sprintf("node-%d", i) }

// config returns slurm.conf.
func (c *cluster) config() string {
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	text := fmt.Sprintf(`ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[3]d
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=%[2]s/sock
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/%%n.spool
SlurmdPidFile=%[2]s/%%n.pid
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdParameters=config_overrides
KillWait=60
`, host, c.dir, freePort(c.t))
	for i, kind := range kinds {
		text += fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d ", node(i), host, freePort(c.t)) +
			"CPUs=8 RealMemory=64000 Feature=" + kind + "\n"
	}
	return text + "PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP\n"
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

// await polls for an event; three minutes mean that it never comes.
func (c *cluster) await(event string, happened func() bool) {
	c.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !happened(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("it never happened that %s", event)
		}
	}
}

// awaitJobs returns when no job waits or runs.
func (c *cluster) awaitJobs() {
	c.t.Helper()
	c.await("all jobs have ended", func() bool { return c.run("squeue", "-h") == "" })
}
