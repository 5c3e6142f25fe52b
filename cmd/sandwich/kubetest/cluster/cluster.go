// Package cluster runs Kubernetes on this machine: etcd, the control plane, kube-proxy and nodes.
package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sandwich/cmd/sandwich/kubetest/certs"
	"sandwich/cmd/sandwich/kubetest/daemon"
	"sandwich/cmd/sandwich/kubetest/sandbox"
)

// The networks of a cluster, which only its namespaces see.
const (
	gateway  = "10.100.0.1" // of the control plane
	services = "10.102.0.0/24"
	server   = "https://" + gateway + ":6443"
)

// Cluster is a running cluster.
type Cluster struct {
	Client  *kubernetes.Clientset
	Config  *rest.Config
	daemons []*daemon.Daemon
	dir     string
	kube    string
}

// Start starts the control plane. The process must run in a sandbox. kube is the path of the binary
// of package kube. It also returns the cluster at an error, for its logs.
func Start(kube string) (*Cluster, error) {
	c := &Cluster{dir: sandbox.Dir(), kube: kube}
	for _, dir := range []string{"certs", "logs"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return c, err
		}
	}
	if err := c.issue(); err != nil {
		return c, err
	}
	// Services have addresses that kube-proxy replaces when a connection is made.
	for _, args := range [][]string{{"addr", "add", gateway + "/32", "dev", "lo"},
		{"route", "add", services, "dev", "lo", "src", gateway}} {
		if err := sandbox.IP(args...); err != nil {
			return c, err
		}
	}
	if err := c.run("etcd", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn"); err != nil {
		return c, err
	}
	if err := c.startServer(); err != nil {
		return c, err
	}
	err := c.runClient("kube-controller-manager", "--leader-elect=false",
		"--service-account-private-key-file="+c.path("certs/accounts.key"), "--root-ca-file="+c.path("certs/ca.crt"))
	if err != nil {
		return c, err
	}
	return c, c.runClient("kube-scheduler", "--leader-elect=false")
}

// StartProxy starts kube-proxy next to the control plane, so that programs there reach services.
// It must have the name of a node, which exists.
func (c *Cluster) StartProxy() error {
	return c.runClient("kube-proxy", "--proxy-mode=nftables", "--hostname-override="+nodeName(0),
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0")
}

// runClient starts a client of the API server.
func (c *Cluster) runClient(program string, args ...string) error {
	return c.run(program, append(args, "--kubeconfig="+c.path("certs/admin.kubeconfig"))...)
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// run starts a program of the binary.
func (c *Cluster) run(program string, args ...string) error {
	d, err := daemon.Start(exec.Command(c.kube, append([]string{program}, args...)...), c.path("logs"), program)
	if err == nil {
		c.daemons = append(c.daemons, d)
	}
	return err
}

// issue makes certificates and keys.
func (c *Cluster) issue() error {
	a, err := certs.New(c.path("certs"))
	if err != nil {
		return err
	}
	if err := a.Kubeconfig("admin", server, "admin", "system:masters"); err != nil {
		return err
	}
	for i := range 2 {
		if err := a.Kubeconfig(nodeName(i), server, "system:node:"+nodeName(i), "system:nodes"); err != nil {
			return err
		}
	}
	if err := a.Issue("server", "server", nil, net.ParseIP(gateway), net.ParseIP("127.0.0.1")); err != nil {
		return err
	}
	return a.Issue("accounts", "accounts", nil) // only its key is used
}

// startServer starts the API server and returns when it is ready.
func (c *Cluster) startServer() error {
	certs := c.path("certs") + "/"
	err := c.run("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--advertise-address="+gateway,
		"--tls-cert-file="+certs+"server.crt", "--tls-private-key-file="+certs+"server.key",
		"--client-ca-file="+certs+"ca.crt", "--cert-dir="+certs, "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction", "--service-cluster-ip-range="+services,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+certs+"accounts.key",
		"--service-account-signing-key-file="+certs+"accounts.key", "--endpoint-reconciler-type=none",
		"--kubelet-client-certificate="+certs+"admin.crt", "--kubelet-client-key="+certs+"admin.key",
		"--kubelet-preferred-address-types=InternalIP")
	if err != nil {
		return err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", certs+"admin.kubeconfig"); err != nil {
		return err
	}
	c.Config.QPS, c.Config.Burst = 100, 100
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	return c.Await("the API server is ready", func() bool {
		return c.Client.RESTClient().Get().AbsPath("/readyz").Do(background()).Error() == nil
	})
}

// Await polls until an event has happened. It returns an error if a program of the cluster ends
// before or if the event does not happen within five minutes.
func (c *Cluster) Await(event string, happened func() bool) error {
	return daemon.Await(event, c.daemons, happened)
}

// Tails returns the ends of the logs of all programs of the cluster.
func (c *Cluster) Tails() (text string) {
	list, err := filepath.Glob(c.path("logs/*.log"))
	if err != nil {
		return err.Error()
	}
	for _, path := range list {
		text += fmt.Sprintf("== %s\n%s\n", filepath.Base(path), daemon.Tail(path))
	}
	return text
}
