// Package node runs nodes of a cluster: containerd and a kubelet in namespaces of mounts, network
// and host name.
package node

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandwich/cmd/sandwich/kubetest/daemon"
	"sandwich/cmd/sandwich/kubetest/sandbox"
)

// Node describes a node.
type Node struct {
	Name         string
	Dir          string   // with its files
	Logs         string   // folder of the logs of its programs
	Kube         string   // path of the binary of package kube
	Certs        string   // folder with NAME.kubeconfig and ca.crt
	Images       []string // archives of images
	Address      string   // of the node
	Gateway      string   // address of the control plane
	Pods         string   // network of its pods
	ReservedCPUs string   // that are not exclusive
}

const variable = "SANDWICH_NODE"

// Start starts a node. The gateway gets a link to it and a route to its pods.
func Start(n *Node) (*daemon.Daemon, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS}
	linked, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	d, err := daemon.Start(cmd, n.Logs, n.Name)
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"link", "add", n.Name, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(cmd.Process.Pid)},
		{"link", "set", n.Name, "up"},
		{"route", "add", n.Address, "dev", n.Name, "src", n.Gateway},
		{"route", "add", n.Pods, "via", n.Address, "src", n.Gateway},
	} {
		if err := sandbox.IP(args...); err != nil {
			return nil, err
		}
	}
	_, err = io.WriteString(linked, "linked\n")
	return d, err
}

// Main runs the node that Start describes and returns true, or returns false if this process is
// none.
func Main() (bool, error) {
	text := os.Getenv(variable)
	if text == "" {
		return false, nil
	}
	os.Unsetenv(variable)
	var n Node
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return true, err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return true, fmt.Errorf("no link: %w", err)
	}
	return true, n.run()
}

// run runs containerd and the kubelet until one of them ends.
func (n *Node) run() error {
	if err := errors.Join(n.mount(), n.network(), n.configure()); err != nil {
		return err
	}
	containerd, err := daemon.Start(exec.Command("containerd", "--config", n.path("containerd.toml")), n.Logs,
		n.Name+"-containerd")
	if err != nil {
		return err
	}
	running := []*daemon.Daemon{containerd}
	err = daemon.Await("containerd answers", running, func() bool {
		return exec.Command("ctr", "version").Run() == nil
	})
	if err != nil {
		return err
	}
	for _, image := range n.Images {
		out, err := exec.Command("ctr", "--namespace", "k8s.io", "images", "import", "--base-name",
			"docker.io/library/sandwich", image).CombinedOutput()
		if err != nil {
			return fmt.Errorf("import %s: %w: %s", image, err, out)
		}
	}
	kubelet, err := daemon.Start(exec.Command(n.Kube, "kubelet", "--config="+n.path("kubelet.yaml"),
		"--kubeconfig="+filepath.Join(n.Certs, n.Name+".kubeconfig"), "--hostname-override="+n.Name,
		"--node-ip="+n.Address, "--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki"), n.Logs,
		n.Name+"-kubelet")
	if err != nil {
		return err
	}
	for _, d := range []*daemon.Daemon{containerd, kubelet} {
		go func() { <-d.Ended(); fmt.Fprintln(os.Stderr, d.Err()); os.Exit(1) }()
	}
	select {}
}

func (n *Node) path(name string) string { return filepath.Join(n.Dir, name) }

// mount gives the node folders of its own, where containerd and the kubelet expect them.
func (n *Node) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for name, at := range map[string]string{"lib": "/var/lib", "log": "/var/log", "run": "/run"} {
		if err := os.MkdirAll(n.path(name), 0o755); err != nil {
			return err
		}
		if err := sandbox.Bind(n.path(name), at); err != nil {
			return err
		}
	}
	return unix.Sethostname([]byte(n.Name))
}

// network sets up the end of the link in the node.
func (n *Node) network() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644); err != nil {
		return err
	}
	for _, args := range []string{"link set lo up", "addr add " + n.Address + "/32 dev eth0", "link set eth0 up",
		"route add " + n.Gateway + " dev eth0", "route add default via " + n.Gateway} {
		if err := sandbox.IP(strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}
