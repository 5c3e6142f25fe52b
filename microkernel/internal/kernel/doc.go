// Package kernel defines what the backends of the kernel generator share with each other and with
// package microkernel, which exports most of it: the description of a kernel (Spec), the features
// of a CPU (Features), the arguments of generated functions, and the interfaces of a backend
// (Target).
//
// The package knows no instruction encoding. It must not import an emitter (amd64, arm64); backends
// register themselves during initialization.
package kernel
