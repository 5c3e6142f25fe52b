//go:build !unix

package conntable

// freeDescriptors returns how many more descriptors the process may open, and whether that is
// known.
func freeDescriptors() (n int, known bool) { return 0, false }
