// Package sysfs reads a Linux machine from sysfs and procfs: its topology, NUMA nodes and core
// types, and the PUs, memory nodes and CPU quota that cgroups and affinity leave to this process.
// It reads the running system or a saved copy.
package sysfs
