// Package listen opens the listeners that flags name: TCP addresses, unix sockets, and sockets that
// systemd opened.
package listen

import (
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
)

// kind is the kind of an address.
type kind uint8

const (
	tcp    kind = iota // where is address:port
	local              // where is the path of a unix socket
	passed             // where is the name of sockets of systemd
)

// address is a parsed address with its options.
type address struct {
	kind   kind
	where  string
	mode   fs.FileMode // of a unix socket
	secure *bool       // TLS; nil: not given
}

// defaultMode lets only the user of the server connect to a unix socket.
const defaultMode fs.FileMode = 0o600

// example returns an address for a flag. They differ, so that users do not give two flags the same.
func example(flag string) string {
	switch flag {
	case "--health-listen":
		return "127.0.0.1:8081"
	case "--pprof":
		return "127.0.0.1:6060"
	}
	return "127.0.0.1:8080"
}

// parse reads an address of a flag: address:port, unix:PATH or fd:NAME, with the options mode=OCTAL
// of a unix socket and tls=yes or tls=no after commas.
func parse(flag, text string) (a address, err error) {
	parts := strings.Split(text, ",")
	fail := func(format string, args ...any) (address, error) {
		return a, fmt.Errorf("%s %s: "+format, append([]any{flag, text}, args...)...)
	}
	switch name, rest, _ := strings.Cut(parts[0], ":"); name {
	case "unix":
		a = address{kind: local, where: rest, mode: defaultMode}
		if rest == "" {
			return fail("the path of the socket is missing; give one such as unix:/run/sandwich/api.sock")
		}
	case "fd":
		a = address{kind: passed, where: rest}
		if rest == "" {
			return fail("the name of the socket is missing; give the FileDescriptorName= of the socket unit")
		}
	default:
		a = address{kind: tcp, where: parts[0]}
		if _, _, err := net.SplitHostPort(a.where); err != nil {
			return a, fmt.Errorf("%s %s is not an address; give address:port, such as %s, unix:PATH or fd:NAME",
				flag, text, example(flag))
		}
	}
	for _, option := range parts[1:] {
		name, value, _ := strings.Cut(option, "=")
		switch {
		case name == "mode" && a.kind == local:
			mode, err := strconv.ParseUint(value, 8, 12)
			if err != nil || mode > 0o777 || mode&0o200 == 0 {
				return fail("%s is not a mode of a socket; give one such as mode=0660", option)
			}
			a.mode = fs.FileMode(mode)
		case name == "tls" && (value == "yes" || value == "no"):
			yes := value == "yes"
			a.secure = &yes
		case name == "mode":
			return fail("only unix sockets have a mode")
		default:
			return fail("unknown option %s; the options are mode=OCTAL and tls=yes or tls=no", option)
		}
	}
	return a, nil
}
