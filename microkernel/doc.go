// Package microkernel builds register-tile kernels at run time from a comparable Spec; RunRef is the plain-Go oracle.
package microkernel
