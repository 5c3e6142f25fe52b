package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sandwich/cmd/sandwich/kubetest/sandbox"
)

// plugins are the folders in which distributions install the plugins of CNI.
var plugins = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Missing returns what a cluster lacks here, "" if nothing.
func Missing() string {
	if why := sandbox.Missing("containerd", "ctr", "containerd-shim-runc-v2", "runc", "ip", "nft"); why != "" {
		return why
	}
	if pluginFolder() == "" {
		return "the plugins of CNI are not installed"
	}
	return ""
}

func pluginFolder() string {
	for _, dir := range plugins {
		if _, err := exec.LookPath(filepath.Join(dir, "ptp")); err == nil {
			return dir
		}
	}
	return ""
}

// configure writes the files of settings.
func (n *Node) configure() error {
	if err := os.MkdirAll(n.path("cni"), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"containerd.toml":     fmt.Sprintf(containerdConfig, pluginFolder(), n.path("cni")),
		"cni/10-ptp.conflist": fmt.Sprintf(cniConfig, n.Pods),
		"kubelet.yaml": fmt.Sprintf(kubeletConfig, sandbox.Cgroup(), n.Name, n.ReservedCPUs,
			filepath.Join(n.Certs, "ca.crt")),
	} {
		if err := os.WriteFile(n.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Without the restriction containers do not start where the system withholds CAP_SYS_RESOURCE.
const containerdConfig = `version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:test"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`

const cniConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipam": {"type": "host-local", "subnet": %q, "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// The kubelet sees the disk of this machine, however full, so it evicts no pods for it.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: /%s/%s
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: [pods]
cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
topologyManagerPolicy: single-numa-node
reservedSystemCPUs: %q
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: %q}
authorization: {mode: AlwaysAllow}
makeIPTablesUtilChains: false
resolvConf: ""
evictionHard: {memory.available: 50Mi}
imageGCHighThresholdPercent: 100
`
