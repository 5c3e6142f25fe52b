//go:build !unix

package listen

import (
	"io/fs"
	"net"
)

// listenUnix listens on a unix socket. The system has no modes of sockets.
func listenUnix(path string, _ fs.FileMode) (net.Listener, error) { return net.Listen("unix", path) }
