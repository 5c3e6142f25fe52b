// Package testguest runs a program in a Linux guest under qemu's software emulation, so that NUMA
// nodes, clusters and cpusets that this machine lacks are real to the program: a kernel of a
// distribution, and an initramfs (Archive) with the program and package init, which runs
// a list of Steps and prints a Result for each on the serial console. For tests only. Speed in a
// guest says nothing about any machine.
package testguest
