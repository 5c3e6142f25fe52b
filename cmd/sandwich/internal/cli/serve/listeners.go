package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/retention"
	"sandwich/runtime/model"
	"sandwich/runtime/server"
	"sandwich/runtime/server/request"
	"sandwich/runtime/session"
)

// listeners holds the listeners and API keys of a server. It exists from before the model is loaded
// until the last request has ended.
type listeners struct {
	server  *server.Server
	main    net.Listener
	health  net.Listener // nil without --health-listen
	keys    []string
	keyFile string         // "" without --api-key-file
	level   *slog.LevelVar // of the request log
	// reread returns the settings that SIGHUP reloads, from the environment and the file of
	// settings.
	reread   func() (reloaded, error)
	hangUps  chan os.Signal // SIGHUP
	stops    chan os.Signal // SIGINT and SIGTERM while --drain-delay may run
	hurry    chan struct{}  // closed by the second of them
	noHealth context.CancelFunc
}

// openListeners binds the addresses and reads the keys. It runs before the model is loaded, so that
// a busy port or an unreadable file is reported at once.
func (f *serveFlags) openListeners() (*listeners, error) {
	d := &listeners{keyFile: f.keys, level: &f.access.level, reread: f.reread, noHealth: func() {},
		hangUps: make(chan os.Signal, 1), stops: make(chan os.Signal, 2), hurry: make(chan struct{})}
	signal.Notify(d.hangUps, syscall.SIGHUP)
	if f.drainDelay > 0 {
		signal.Notify(d.stops, os.Interrupt, syscall.SIGTERM)
		go d.awaitHurry(f.drainDelay)
	}
	var err error
	if d.keys, err = readKeys(f.keys); err != nil {
		return nil, exit.Usage(err)
	}
	if d.main, err = listen("--listen", f.listen); err != nil {
		return nil, err
	}
	if f.health != "" {
		if d.health, err = listen("--health-listen", f.health); err != nil {
			d.main.Close()
			return nil, err
		}
	}
	if addr := d.main.Addr(); len(d.keys) == 0 && !isLoopback(addr) {
		show.Notice(fmt.Sprintf("warning: other machines can reach %s without an API key; "+
			"give --api-key-file, or --listen 127.0.0.1:8080", addr))
	}
	// A proxy may have a connection per running or waiting request, and as many idle ones.
	conns := max(4096, 4*2*(f.sizes.Parallel+f.sizes.Queue))
	d.server = server.New(nil, f.access.options(server.Options{
		APIKeys: d.keys, Grace: f.grace, MaxConns: conns, ClientConns: f.clientConns, DrainDelay: f.drainDelay,
		Hurry: d.hurry, OpenMetrics: f.openMetrics,
	}, d.main.Addr()))
	return d, nil
}

// open serves until ctx ends and the requests in flight are done. The channel then receives the
// error of the listener.
func (d *listeners) open(ctx context.Context) <-chan error {
	go d.reloadAtHangUp()
	if d.health != nil {
		var ctx context.Context
		// The listener lives until close, since /health also reports the shutdown.
		ctx, d.noHealth = context.WithCancel(context.Background())
		go func() {
			if err := d.server.ServeHealth(ctx, d.health); err != nil {
				show.Notice("--health-listen: " + err.Error())
			}
		}()
	}
	ended := make(chan error, 1)
	go func() { ended <- d.server.Serve(ctx, d.main) }()
	return ended
}

// awaitHurry ends the drain delay at the second signal to stop. A signal after the delay ends the
// program.
func (d *listeners) awaitHurry(delay time.Duration) {
	defer signal.Stop(d.stops)
	if _, ok := <-d.stops; !ok {
		return
	}
	show.Notice(fmt.Sprintf("requests are accepted for another %s; a second signal ends this delay", delay))
	select {
	case <-d.stops:
		close(d.hurry)
	case <-time.After(delay):
	}
}

// close stops the reloading of keys and the health listener.
func (d *listeners) close() {
	signal.Stop(d.hangUps)
	close(d.hangUps)
	signal.Stop(d.stops)
	close(d.stops)
	d.noHealth()
}

// reloaded has the settings that SIGHUP reloads.
type reloaded struct {
	file    string // of the settings; "": none
	keyFile string
	verbose bool
}

// reloadAtHangUp reads the settings and the key file at each SIGHUP. If that fails, nothing
// changes.
func (d *listeners) reloadAtHangUp() {
	for range d.hangUps {
		text, err := d.reload()
		if err != nil {
			text = fmt.Sprintf("%v; nothing is changed", err)
		}
		show.Notice("SIGHUP: " + text)
	}
}

// reload applies the present settings and keys, and returns a description of them.
func (d *listeners) reload() (string, error) {
	now, err := d.reread()
	switch {
	case err != nil:
		return "", err
	case now.keyFile == "" && now.file == "":
		return "", errors.New("there is no --api-key-file and no --config to reload")
	}
	if (now.keyFile == "") != (d.keyFile == "") {
		return "", errors.New("--api-key-file cannot be added or removed without a restart")
	}
	keys, err := readKeys(now.keyFile)
	if err != nil {
		return "", err
	}
	d.level.Set(levelOf(now.verbose))
	if now.keyFile == "" {
		return "loaded the settings from " + now.file, nil
	}
	d.keyFile = now.keyFile
	d.server.SetKeys(keys)
	return fmt.Sprintf("loaded %s from %s", show.Plural(len(keys), "key"), d.keyFile), nil
}

// announce prints the address of the server and an example request.
func announce(w io.Writer, addr net.Addr, s *session.Session, keys []string) {
	bound, example := addr.String(), addr.String()
	if h, port, err := net.SplitHostPort(example); err == nil && net.ParseIP(h).IsUnspecified() {
		bound += ", all interfaces of this machine"
		example = net.JoinHostPort("127.0.0.1", port)
	}
	auth := ""
	if len(keys) > 0 {
		auth = ` -H "Authorization: Bearer $API_KEY"`
	}
	path, body := tryOut(s)
	fmt.Fprintf(w, "serving %s on http://%s; try:\n", s.Name, bound)
	fmt.Fprintf(w, "curl http://%s%s%s -H 'Content-Type: application/json' -d '%s'\n", example, path, auth, body)
}

// tryOut returns an example request that suits the model.
func tryOut(s *session.Session) (path, body string) {
	switch {
	case s.Scores:
		return "/v1/rerank", `{"query": "Who hunts at night?", "documents": ["The fox.", "The hen."]}`
	case s.Pooling != model.NoPooling:
		return "/v1/embeddings", `{"input": ["A story about a fox.", "The rain in Spain."]}`
	}
	return "/v1/chat/completions", `{"messages": [{"role": "user", "content": "Tell me a story about a fox."}], ` +
		`"max_tokens": 80, "temperature": 0.6}`
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// listen opens a TCP listener. flag names the flag in errors.
func listen(flag, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program; choose another port with %s, such as %s "+
			"127.0.0.1:8081",
			addr, flag, flag)
	}
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s %s: %w", flag, addr, err))
	}
	return ln, nil
}

// readKeys reads API keys, one per line. The default class of the requests of a key may follow it.
// Empty lines and lines that start with # are ignored.
func readKeys(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := retention.ReadRegular(path, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("--api-key-file: %w", err)
	}
	var keys []string
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		key := strings.TrimSpace(line)
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if !request.CheckKey(key) {
			return nil, fmt.Errorf("--api-key-file %s, line %d: only class=proactive or class=NUMBER may follow "+
				"a key",
				path, n)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("--api-key-file %s has no key; write one per line", path)
	}
	return keys, nil
}
