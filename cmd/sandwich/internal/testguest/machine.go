package testguest

import (
	"fmt"
	"strconv"
)

// Machine describes the hardware of a guest.
type Machine struct {
	Arch           string  // amd64 or arm64, as in GOARCH
	Nodes          int     // NUMA nodes
	CPUsPerNode    int     // on amd64 a node is a package; on arm64 there is one package
	ThreadsPerCore int     // amd64 only; 0 means 1
	Clusters       int     // of CPUs in each node; arm64 only
	MiBPerNode     int     // memory
	Distances      [][]int // node by node; 10 on the diagonal
	KVM            bool    // the CPUs of the host run the guest instead of an emulation, where they can
	CPU            string  // changes to the CPU with the most features, as in qemu's option -cpu; amd64 only
	Tap            string  // tap device of the host that becomes the network interface; "" for none
	Shares         []Share // folders of the host
}

// Share is a folder of the host that a guest can use as a file system of the type virtiofs.
type Share struct {
	Tag    string // name for mounting
	Folder string // path on the host
	At     string // path in the guest at which command init mounts it
	Write  bool   // the guest may write
}

// program returns the name of the qemu program for the architecture.
func (m *Machine) program() string {
	if m.Arch == "arm64" {
		return "qemu-system-aarch64"
	}
	return "qemu-system-x86_64"
}

// arguments returns the command line of qemu for a guest with processors, memory, a serial console
// on standard output, and the network interface and the shares of m. sockets holds the socket of
// the server of each share.
func (m *Machine) arguments(tools Tools, initramfs string, sockets []string) []string {
	cpus := m.Nodes * m.CPUsPerNode
	accelerator, model := "tcg,thread=multi", "max"
	if tools.KVM {
		// KVM of some AMD hosts offers an MSR of Intel that it does not let qemu set.
		accelerator, model = "kvm", "host,arch-capabilities=off"
	}
	args := []string{"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-accel", accelerator, "-m", fmt.Sprint(m.Nodes * m.MiBPerNode), "-kernel", tools.Kernel, "-initrd", initramfs}
	console := "ttyS0"
	switch m.Arch {
	case "arm64":
		console = "ttyAMA0"
		// the architected pointer hash costs a fifth of the time
		args = append(args, "-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on",
			"-smp", fmt.Sprintf("%d,sockets=1,clusters=%d,cores=%d,threads=1", cpus, m.Nodes*m.Clusters,
				m.CPUsPerNode/m.Clusters))
	default:
		threads := max(1, m.ThreadsPerCore)
		if threads > 1 && !tools.KVM {
			model += ",vendor=GenuineIntel" // qemu does not emulate how AMD's CPUs describe their threads
		}
		if m.CPU != "" {
			model += "," + m.CPU
		}
		args = append(args, "-machine", "q35", "-cpu", model,
			"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", cpus, m.Nodes, m.CPUsPerNode/threads, threads))
	}
	memory := "memory-backend-ram"
	if len(m.Shares) > 0 { // the servers of the shares write to it
		memory = "memory-backend-memfd,share=on"
	}
	for n := range m.Nodes {
		id := strconv.Itoa(n)
		args = append(args, "-object", fmt.Sprintf("%s,id=m%s,size=%dM", memory, id, m.MiBPerNode),
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
	if m.Tap != "" {
		args = append(args, "-netdev", "tap,id=net,script=no,downscript=no,ifname="+m.Tap,
			"-device", "virtio-net-pci,netdev=net,romfile=")
	}
	for i, s := range m.Shares {
		args = append(args, "-chardev", "socket,id="+s.Tag+",path="+sockets[i],
			"-device", "vhost-user-fs-pci,chardev="+s.Tag+",tag="+s.Tag)
	}
	// The kernel's check of the timer fails if the host is busy.
	return append(args, "-append", "console="+console+" panic=-1 loglevel=3 no_timer_check")
}
