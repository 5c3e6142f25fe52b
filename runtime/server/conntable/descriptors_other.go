//go:build !unix

package conntable

// freeDescriptors returns how many descriptors the process may still open, if that is known.
func freeDescriptors() (n int, known bool) { return 0, false }
