//go:build !linux

package systemd

import (
	"errors"
	"net"
)

// Sockets holds no sockets on this system.
type Sockets struct{}

// TakeSockets returns no sockets.
func TakeSockets() (*Sockets, error) { return &Sockets{}, nil }

// Listen returns an error.
func (s *Sockets) Listen(string) ([]net.Listener, error) {
	return nil, errors.New("this system has no sockets of systemd")
}

// Unused returns nil.
func (s *Sockets) Unused() []string { return nil }
