// Package kernel is what the backends of the kernel generator share with each other and with package microkernel, which exports
// most of it: what a kernel is (Spec), what a CPU has (Features), what a call is, and what a backend answers (Target).
package kernel
