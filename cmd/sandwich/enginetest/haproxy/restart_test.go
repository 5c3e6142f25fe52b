package haproxy

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var timed = flag.Bool("timed", false, "also restart by the clock: one signal for each replica, and --drain-delay 3s")

// requests is the smallest number of requests for each proxy during a restart.
const requests = 300

// traffic sends requests to a proxy until it is stopped.
type traffic struct {
	*proxy
	quit         chan struct{} // closed: end with enough requests
	abort        atomic.Bool   // end at once
	workers      sync.WaitGroup
	sent, failed atomic.Int64
}

func newTraffic(p *proxy) *traffic {
	tr := &traffic{proxy: p, quit: make(chan struct{})}
	for w := range 3 {
		tr.workers.Go(func() { tr.work(w) })
	}
	p.t.Cleanup(func() {
		tr.abort.Store(true)
		tr.workers.Wait()
	})
	return tr
}

func (tr *traffic) work(w int) {
	for i := 0; !tr.abort.Load(); i++ {
		select {
		case <-tr.quit:
			if tr.sent.Load() >= requests {
				return
			}
		default:
		}
		session := fmt.Sprintf("session %d %d", w, i%20)
		_, err := tr.ask(session, []message{{"user", "Tell me a story about " + session + "."}}, 12, i%2 == 0)
		tr.sent.Add(1)
		if err != nil && tr.failed.Add(1) <= 5 {
			tr.t.Errorf("%s, request %d: %v", tr.name, tr.sent.Load(), err)
		}
	}
}

// stop returns when at least the required number of requests was answered.
func (tr *traffic) stop() {
	close(tr.quit)
	tr.workers.Wait()
	tr.t.Logf("%s: %d of %d requests failed", tr.name, tr.failed.Load(), tr.sent.Load())
}

// TestRollingRestart restarts all replicas, one after the other, while requests run by hash, by
// round robin, and without retries. None fails. The delay of each replica ends by a second signal
// once HAProxy has taken it out, so that the test does not depend on the speed of the machine.
func TestRollingRestart(t *testing.T) {
	all := startReplicas(t, "--drain-delay", "1h", "--grace", "10m")
	running := startTraffic(t, all)
	for i, r := range all {
		r.terminate()
		for _, tr := range running {
			tr.await(i, "DOWN")
			// Requests that HAProxy sent before it noticed have arrived when it gets an answer. The
			// other proxies may send such a request again.
			if tr.name == "no retries" {
				tr.awaitIdle(i)
			}
		}
		r.terminate()
		r.wait()
		r.start()
		for _, tr := range running {
			tr.await(i, "UP")
		}
	}
	for _, tr := range running {
		tr.stop()
	}
	stop(all)
}

// TestTimedRestart restarts all replicas as a supervisor does: by one signal, with a drain delay
// above the time of HAProxy's checks.
func TestTimedRestart(t *testing.T) {
	if !*timed {
		t.Skip("it depends on the speed of the machine: run make test-haproxy")
	}
	all := startReplicas(t, "--drain-delay", "3s", "--grace", "10m")
	running := startTraffic(t, all)
	for i, r := range all {
		start := time.Now()
		r.terminate()
		r.wait()
		t.Logf("replica %d ended after %s", i+1, time.Since(start).Round(time.Millisecond))
		r.start()
		for _, tr := range running {
			tr.await(i, "UP")
		}
	}
	for _, tr := range running {
		tr.stop()
	}
	stop(all)
}

// startTraffic starts a proxy of each variant and requests to it.
func startTraffic(t *testing.T, all []*replica) (running []*traffic) {
	t.Helper()
	var proxies []*proxy
	for _, name := range []string{"hash", "round robin", "no retries"} {
		proxies = append(proxies, startProxy(t, name, all))
	}
	for _, p := range proxies {
		running = append(running, newTraffic(p))
	}
	return running
}
