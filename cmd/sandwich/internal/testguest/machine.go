package testguest

import (
	"fmt"
	"strconv"
)

// Machine describes the hardware of a guest.
type Machine struct {
	Arch        string  // amd64 or arm64, as in GOARCH
	Nodes       int     // NUMA nodes
	CPUsPerNode int     // on amd64 a node is a package; on arm64 there is one package
	Clusters    int     // of CPUs in each node; arm64 only
	MiBPerNode  int     // memory
	Distances   [][]int // node by node; 10 on the diagonal
}

// program returns the name of the qemu program for the architecture.
func (m *Machine) program() string {
	if m.Arch == "arm64" {
		return "qemu-system-aarch64"
	}
	return "qemu-system-x86_64"
}

// arguments returns the command line of qemu for a guest with only processors, memory and a serial
// console on standard output.
func (m *Machine) arguments(kernel, initramfs string) []string {
	cpus := m.Nodes * m.CPUsPerNode
	args := []string{"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-accel", "tcg,thread=multi", "-m", fmt.Sprint(m.Nodes * m.MiBPerNode), "-kernel", kernel, "-initrd", initramfs}
	console := "ttyS0"
	switch m.Arch {
	case "arm64":
		console = "ttyAMA0"
		// the architected pointer hash costs a fifth of the time
		args = append(args, "-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on",
			"-smp", fmt.Sprintf("%d,sockets=1,clusters=%d,cores=%d,threads=1", cpus, m.Nodes*m.Clusters,
				m.CPUsPerNode/m.Clusters))
	default:
		args = append(args, "-machine", "q35", "-cpu", "max",
			"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d,threads=1", cpus, m.Nodes, m.CPUsPerNode))
	}
	for n := range m.Nodes {
		id := strconv.Itoa(n)
		args = append(args, "-object", fmt.Sprintf("memory-backend-ram,id=m%s,size=%dM", id, m.MiBPerNode),
			"-numa", fmt.Sprintf("node,nodeid=%s,memdev=m%s,cpus=%d-%d", id, id, n*m.CPUsPerNode,
				(n+1)*m.CPUsPerNode-1))
	}
	for i, row := range m.Distances {
		for j, d := range row {
			if i != j {
				args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", i, j, d))
			}
		}
	}
	return append(args, "-append", "console="+console+" panic=-1 loglevel=3")
}
