// Package replica reads the addresses of the servers that exported configurations of load balancers
// name.
package replica

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Replica is the address of a server.
type Replica struct {
	Host string // a name, an IPv4 address, or an IPv6 address without brackets
	Port int
}

// maxReplicas bounds the length of exported files.
const maxReplicas = 1000

// Parse reads addresses of the form HOST:PORT.
func Parse(addresses []string) ([]Replica, error) {
	if len(addresses) > maxReplicas {
		return nil, fmt.Errorf("%d replicas are too many; give at most %d", len(addresses), maxReplicas)
	}
	var out []Replica
	seen := map[Replica]bool{}
	for _, a := range addresses {
		host, text, err := net.SplitHostPort(strings.TrimSpace(a))
		port, bad := strconv.ParseUint(text, 10, 16)
		if err != nil || bad != nil || port == 0 || !isHost(host) {
			return nil, fmt.Errorf("%.80q is not an address; give HOST:PORT, such as 10.0.0.1:8080", a)
		}
		r := Replica{host, int(port)}
		if seen[r] {
			return nil, fmt.Errorf("%s is given twice", r)
		}
		seen[r] = true
		out = append(out, r)
	}
	return out, nil
}

// hostName matches names that are safe in every exported format.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

func isHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" || hostName.MatchString(host)
}

// IsIPv4 reports whether the host is an IPv4 address.
func (r Replica) IsIPv4() bool {
	addr, err := netip.ParseAddr(r.Host)
	return err == nil && addr.Is4()
}

// String returns the address, an IPv6 address in brackets.
func (r Replica) String() string { return net.JoinHostPort(r.Host, strconv.Itoa(r.Port)) }
