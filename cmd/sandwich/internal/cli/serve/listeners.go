package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/serve/modelset"
	"sandwich/cmd/sandwich/internal/listen"
	"sandwich/cmd/sandwich/internal/profiling"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/cmd/sandwich/internal/systemd"
	"sandwich/runtime/server"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/tracing"
)

// listeners holds the listeners and API keys of a server. It exists from before the model is loaded
// until the last request has ended.
type listeners struct {
	server  *server.Server
	sockets *listen.Listeners
	notify  *systemd.Notifier
	tracer  *tracing.Tracer
	serving string      // describes what is served, for systemd; set before isReady
	isReady atomic.Bool // systemd knows that the server is ready
	stages  stages
	mu      sync.Mutex // guards the next three fields
	keys    []string
	keyFile string         // "" without --api-key-file
	models  *modelset.Set  // nil without --models
	level   *slog.LevelVar // of the request log
	// reread returns the settings that SIGHUP reloads, from the environment and the file of
	// settings.
	reread  func() (reloaded, error)
	hangUps chan os.Signal  // SIGHUP
	stops   chan os.Signal  // SIGINT and SIGTERM while --drain-delay may run
	hurry   chan struct{}   // closed by the second of them
	serves  context.Context // of what runs until close
	end     context.CancelFunc
}

// openListeners binds the addresses and reads the keys. It runs before the model is loaded, so that
// a busy port or an unreadable file is reported at once.
func (f *serveFlags) openListeners() (*listeners, error) {
	d := &listeners{keyFile: f.keys, level: &f.access.level, reread: f.reread, notify: systemd.TakeNotifier(),
		hangUps: make(chan os.Signal, 1), stops: make(chan os.Signal, 2), hurry: make(chan struct{})}
	d.serves, d.end = context.WithCancel(context.Background())
	signal.Notify(d.hangUps, syscall.SIGHUP)
	if f.drainDelay > 0 {
		signal.Notify(d.stops, os.Interrupt, syscall.SIGTERM)
		go d.awaitHurry(f.drainDelay)
	}
	var err error
	if d.keys, err = readKeys(f.keys); err != nil {
		return nil, exit.Usage(err)
	}
	if d.tracer, err = openTracer(f.otlp); err != nil {
		return nil, exit.Usage(err)
	}
	if d.sockets, err = f.listen.Open(show.Notice); err != nil {
		return nil, err
	}
	d.warnOpen()
	// A proxy may have a connection per running or waiting request, and as many idle ones.
	conns := max(4096, 4*2*(f.sizes.Parallel+f.sizes.Queue))
	d.server = server.New(nil, f.access.options(server.Options{
		APIKeys: d.keys, Grace: f.grace, MaxConns: conns, ClientConns: f.clientConns, DrainDelay: f.drainDelay,
		Hurry: d.hurry, OpenMetrics: f.openMetrics, Metrics: d.metrics,
		Tracer: d.tracer,
	}, d.sockets.URLs))
	return d, nil
}

// metrics returns the metrics of the build, of traces and of the certificate.
func (d *listeners) metrics() []metrics.Metric {
	out := append(d.tracer.Metrics(), metrics.Metric{Name: "sandwich_build_info", Help: "1, with the build.", Value: 1,
		Labels: [][2]string{{"version", build.Version()}, {"commit", build.Commit()},
			{"goversion", runtime.Version()}}})
	if pair := d.sockets.Pair; pair != nil {
		out = append(out, metrics.Metric{Name: "sandwich_tls_certificate_expiry_timestamp_seconds",
			Help:  "Time at which the certificate of --tls-cert expires, in seconds since 1970.",
			Value: float64(pair.Expiry().Unix())})
	}
	return out
}

// warnOpen warns of addresses that other machines reach without a key.
func (d *listeners) warnOpen() {
	for _, u := range d.sockets.URLs {
		if len(d.keys) == 0 && !listen.IsLocal(u.Addr) {
			show.Notice(fmt.Sprintf("warning: other machines can reach %s without an API key; "+
				"give --api-key-file, or --listen 127.0.0.1:8080", u.Addr))
		}
	}
}

// open serves until ctx ends and the requests in flight are done. The channel then receives the
// error of the listener.
func (d *listeners) open(ctx context.Context) <-chan error {
	go d.reloadAtHangUp()
	run := func(flag string, serve func() error) {
		if err := serve(); err != nil {
			show.Notice(flag + ": " + err.Error())
		}
	}
	// These listeners live until close: /health also reports the shutdown.
	if list := d.sockets.Health; len(list) > 0 {
		go run("--health-listen", func() error { return d.server.ServeHealth(d.serves, list...) })
	}
	if ln := d.sockets.Profile; ln != nil {
		go run("--pprof", func() error { return profiling.Serve(d.serves, ln) })
	}
	if pair := d.sockets.Pair; pair != nil {
		go pair.Follow(d.serves)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.server.Serve(ctx, d.sockets.API...) }()
	return ended
}

// loading reports the progress of loading at /health and to systemd. It may be called concurrently.
func (d *listeners) loading(stage string, share float64) {
	d.server.Progress(stage, share)
	d.stages.report(stage, func() { d.notify.Starting("loading: "+stage, startTime) })
}

// startTime is the time that systemd grants from each report of loading on.
const startTime = 5 * time.Minute

// ready reports to systemd that the server is ready, and shows the watchdog that the engine works.
func (d *listeners) ready(name string, progress func() (uint64, bool)) {
	bound, _ := describeURL(d.sockets.URLs[0])
	d.serving = "serving " + name + " on " + bound
	d.isReady.Store(true)
	d.notify.Ready(d.serving)
	d.stages.trace(d.tracer, name)
	go d.notify.Watch(d.serves, progress)
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

// traceTime limits how long close waits for the collector of traces.
const traceTime = 2 * time.Second

// close stops the reloading of keys and the listeners that report the shutdown, and sends the last
// traces.
func (d *listeners) close() {
	signal.Stop(d.hangUps)
	close(d.hangUps)
	signal.Stop(d.stops)
	close(d.stops)
	d.end()
	ctx, cancel := context.WithTimeout(context.Background(), traceTime)
	defer cancel()
	d.tracer.Close(ctx)
}
