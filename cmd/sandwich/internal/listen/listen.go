package listen

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/certs"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/systemd"
	"sandwich/runtime/server"
)

// Flags are the flags of listeners.
type Flags struct {
	listen, health []string
	cert, key      string
	profile        string // address of the listener of profiles; "": none
}

// Listeners are open listeners. Those with TLS are made by server.Secure.
type Listeners struct {
	API, Health []net.Listener
	Profile     net.Listener // nil: none
	Pair        *certs.Pair  // nil: no TLS
	URLs        []URL        // of API
}

// URL is the address of a listener of the API.
type URL struct {
	Addr   net.Addr
	Secure bool
}

// Add adds the flags.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.listen, "listen", []string{"127.0.0.1:8080"}, "address:port, unix:PATH (mode 0600; "+
		"unix:PATH,mode=0660 for a group), or fd:NAME of a socket of systemd; ,tls=no excepts a TCP address "+
		"from TLS (may be repeated)")
	fs.StringArrayVar(&f.health, "health-listen", nil, "address, as of --listen, that serves only "+
		"/health and /metrics, without a key, and without TLS unless it ends in ,tls=yes (may be repeated)")
	fs.StringVar(&f.cert, "tls-cert", "", "PEM file with the certificate and its issuers, for TLS on the TCP "+
		"addresses of --listen; it is read again when it changes and at SIGHUP")
	fs.StringVar(&f.key, "tls-key", "", "PEM file with the key of --tls-cert")
	fs.StringVar(&f.profile, "pprof", "", "loopback address, such as 127.0.0.1:6060, that serves profiles of this "+
		"process for go tool pprof")
}

// Check returns an error if a flag is not valid. It opens nothing.
func (f *Flags) Check() error {
	_, _, err := f.parse()
	return err
}

// parse parses the addresses.
func (f *Flags) parse() (api, health []address, err error) {
	switch {
	case (f.cert == "") != (f.key == ""):
		return nil, nil, errors.New("TLS needs both files; give --tls-cert and --tls-key")
	case len(f.listen) == 0:
		return nil, nil, errors.New("--listen is empty; give at least one address")
	}
	if api, err = f.parseAll("--listen", f.listen); err != nil {
		return nil, nil, err
	}
	if health, err = f.parseAll("--health-listen", f.health); err != nil {
		return nil, nil, err
	}
	if f.profile != "" {
		_, err = f.parseAll("--pprof", []string{f.profile})
	}
	return api, health, err
}

// parseAll parses the addresses of a flag.
func (f *Flags) parseAll(flag string, texts []string) (list []address, err error) {
	for _, text := range texts {
		a, err := parse(flag, text)
		switch {
		case err != nil:
			return nil, err
		case a.secure != nil && *a.secure && f.cert == "":
			return nil, fmt.Errorf("%s %s needs a certificate; give --tls-cert and --tls-key", flag, text)
		}
		list = append(list, a)
	}
	return list, nil
}

// opener opens listeners and closes them if one cannot be opened.
type opener struct {
	sockets *systemd.Sockets
	pair    *certs.Pair
	open    []net.Listener
}

// Open opens the listeners. note receives warnings.
func (f *Flags) Open(note func(string)) (l *Listeners, err error) {
	api, health, err := f.parse()
	if err != nil {
		return nil, exit.Usage(err)
	}
	var o opener
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	l = &Listeners{}
	if f.cert != "" {
		if o.pair, err = certs.Load(f.cert, f.key, note); err != nil {
			return nil, exit.Usage(err)
		}
		l.Pair = o.pair
	}
	if o.sockets, err = systemd.TakeSockets(); err != nil {
		return nil, exit.Usage(err)
	}
	for _, a := range api {
		list, err := o.listen("--listen", a, true)
		if err != nil {
			return nil, err
		}
		for _, ln := range list {
			l.API = append(l.API, ln.Listener)
			l.URLs = append(l.URLs, URL{ln.Addr(), ln.secure})
		}
	}
	for _, a := range health {
		list, err := o.listen("--health-listen", a, false)
		if err != nil {
			return nil, err
		}
		for _, ln := range list {
			l.Health = append(l.Health, ln.Listener)
		}
	}
	if l.Profile, err = o.profile(f.profile); err != nil {
		return nil, err
	}
	for _, name := range o.sockets.Unused() {
		note(fmt.Sprintf("warning: the socket %s of systemd is not used; give --listen fd:%s", name, name))
	}
	return l, nil
}

// opened is a listener, with TLS if secure is set.
type opened struct {
	net.Listener
	secure bool
}

// listen opens the listeners of an address. Without the option tls, those on TCP use TLS if secure
// is set and there is a certificate.
func (o *opener) listen(flag string, a address, secure bool) (list []opened, err error) {
	raw, err := o.raw(flag, a)
	o.open = append(o.open, raw...)
	if err != nil {
		return nil, err
	}
	for _, ln := range raw {
		_, onTCP := ln.Addr().(*net.TCPAddr)
		use := o.pair != nil && secure && onTCP
		if a.secure != nil {
			use = *a.secure
		}
		if use {
			ln = server.Secure(ln, o.pair.Config())
		}
		list = append(list, opened{ln, use})
	}
	return list, nil
}

// raw opens the listeners of an address without TLS. Errors name the flag.
func (o *opener) raw(flag string, a address) ([]net.Listener, error) {
	switch a.kind {
	case passed:
		list, err := o.sockets.Listen(a.where)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("%s fd:%s: %w", flag, a.where, err))
		}
		return list, nil
	case local:
		ln, err := listenUnix(a.where, a.mode)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("%s unix: %w", flag, err))
		}
		return []net.Listener{ln}, nil
	}
	ln, err := net.Listen("tcp", a.where)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program; choose another port with %s, such as %s "+
			"127.0.0.1:8081", a.where, flag, flag)
	}
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s %s: %w", flag, a.where, err))
	}
	return []net.Listener{ln}, nil
}

// profile opens the listener of --pprof. It refuses addresses that other machines can reach.
func (o *opener) profile(text string) (net.Listener, error) {
	if text == "" {
		return nil, nil
	}
	a, err := parse("--pprof", text)
	if err != nil {
		return nil, exit.Usage(err)
	}
	list, err := o.listen("--pprof", a, false)
	if err != nil {
		return nil, err
	}
	for _, ln := range list {
		if !IsLocal(ln.Addr()) {
			return nil, exit.Usage(fmt.Errorf("--pprof %s is reachable from other machines; give a loopback address, "+
				"such as 127.0.0.1:6060", text))
		}
	}
	if len(list) != 1 {
		return nil, exit.Usage(fmt.Errorf("--pprof %s has %d sockets; give one", text, len(list)))
	}
	return list[0].Listener, nil
}

func (o *opener) close() {
	for _, ln := range o.open {
		ln.Close()
	}
}

// IsLocal reports whether only programs on this machine reach an address.
func IsLocal(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}
