// Package testguest runs a program in a Linux guest under qemu, so that tests can use NUMA nodes,
// clusters and cpusets that this machine lacks. The guest boots the kernel of a distribution with
// an initramfs (Archive) that holds the program and command init. Command init runs a list of
// Steps and prints a Result for each on the serial console. Speeds measured in a guest are
// meaningless.
package testguest
