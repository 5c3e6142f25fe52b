//go:build amd64 || arm64

package sys

// Pause tells the core n >= 1 times that this is a spin loop: it saves power, leaves the pipeline
// to a sibling hyperthread and avoids a memory-order flush at the end of the loop.
//
//go:noescape
func Pause(n uint32)
