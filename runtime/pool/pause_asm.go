//go:build amd64 || arm64

package pool

// pause tells the core n >= 1 times that this is a spin loop: it saves power, leaves the pipeline
// to a hyperthread sibling and avoids the memory-order flush when the loop ends. About 45 ns each
// on recent x86 servers.
//
//go:noescape
func pause(n uint32)
