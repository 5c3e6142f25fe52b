package serve

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/listen"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/server"
)

// accessFlags holds the flags of browser access and of the request log.
type accessFlags struct {
	hosts   []string
	origins []string
	log     string
	verbose bool
	level   slog.LevelVar
	stable  bool
	noPage  bool
}

func (f *accessFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringArrayVar(&f.hosts, "allow-host", nil,
		"host name that requests may use, in addition to localhost and the listening address; * allows any "+
			"(may be repeated)")
	fs.StringArrayVar(&f.origins, "cors", nil,
		"origin whose pages may use the server from a browser, such as http://localhost:3000; * allows any "+
			"(may be repeated)")
	fs.BoolVar(&f.stable, "stable-prefix", false,
		"move lines of system prompts with the date or the time to the end of the last user message, so that prompts "+
			"begin alike and their cached prefixes are used; a warning in the response says so")
	fs.BoolVar(&f.noPage, "no-page", false, "answer / with a line of text also for browsers, instead of the page")
	fs.StringVar(&f.log, "log", "text", "format of the request log on stderr: text, json or off")
	fs.BoolVarP(&f.verbose, "verbose", "v", false,
		"also log the parameters of each request (never its text), and requests of /health, /metrics and the page; "+
			"print the devices that --device auto does not use, and why, and with --models the pools of worker threads")
}

func (f *accessFlags) check() error {
	switch f.log {
	case "text", "json", "off":
	default:
		return flags.Unknown("log", f.log, "text", "json", "off")
	}
	for _, h := range f.hosts {
		if h == "" || strings.ContainsAny(h, "/@ ") {
			return fmt.Errorf("--allow-host %q is not a host name; give one such as box.lan, or *", show.Clip(h, 40))
		}
	}
	for _, o := range f.origins {
		// Browsers send scheme and host, and the port unless it is the default of the scheme.
		u, err := url.Parse(o)
		if o != "*" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != o) {
			return fmt.Errorf("--cors %q is not an origin; give scheme and host as browsers send them, such as "+
				"http://localhost:3000",
				show.Clip(o, 40))
		}
	}
	return nil
}

// allowedHosts returns the allowed Host names of a server: those of all its TCP addresses. It
// returns nil, which allows every name, if other machines reach one of them and no name is given.
// Unix sockets need none.
func (f *accessFlags) allowedHosts(urls []listen.URL) (hosts []string) {
	for _, u := range urls {
		if _, local := u.Addr.(*net.UnixAddr); local {
			continue
		}
		of := server.HostsOf(u.Addr, f.hosts)
		if of == nil {
			return nil
		}
		hosts = append(hosts, of...)
	}
	return hosts
}

// options returns o with the access and log options of a server that listens on urls.
func (f *accessFlags) options(o server.Options, urls []listen.URL) server.Options {
	o.Hosts, o.Origins = f.allowedHosts(urls), f.origins
	f.level.Set(levelOf(f.verbose))
	how := &slog.HandlerOptions{Level: &f.level}
	switch f.log {
	case "text":
		o.Log = slog.New(slog.NewTextHandler(show.Stderr(), how))
	case "json":
		o.Log = slog.New(slog.NewJSONHandler(show.Stderr(), how))
	}
	if l := o.Log; l != nil {
		show.OnDrop(func(lines int64) { l.Warn("log lines were dropped, because stderr was not read", "lines", lines) })
	}
	o.LogDropped, o.StablePrefix, o.NoPage = show.DroppedLines, f.stable, f.noPage
	return o
}

// detail prints a line for the operator with --verbose.
func (f *accessFlags) detail(text string) {
	if f.level.Level() <= slog.LevelDebug {
		show.Notice(text)
	}
}

// levelOf returns the level of the request log with or without --verbose.
func levelOf(verbose bool) slog.Level {
	if verbose {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
