package topotest

// Kunpeng920 describes the machine of the Sandwich paper: 4 packages with 8 NUMA nodes of 24 cores.
// It leaves out the clusters of four cores, which older Linux kernels do not report.
const Kunpeng920 = "pack:4 numa:2(memory=32GiB) l3:1(size=24MiB) l2:24(size=512KiB) core:1 pu:1"
