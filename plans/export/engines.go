package export

import (
	"errors"
	"slices"
	"strings"
	"time"

	"sandwich/internal/num"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/export/haproxy"
	"sandwich/plans/export/kubernetes"
	"sandwich/plans/export/llmd"
	"sandwich/plans/export/replica"
	"sandwich/plans/export/sheet"
	"sandwich/plans/export/slurm"
	"sandwich/plans/hostkey"
	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// Options has what exports need beyond the plan.
type Options struct {
	Image    string            // container image of the servers
	Memory   int64             // bytes that serving needs; 0: unknown
	Replicas []replica.Replica // servers behind a load balancer
	Capacity int               // requests that a server runs or queues
	// DrainDelay and Grace are --drain-delay and --grace of the servers.
	DrainDelay, Grace time.Duration
}

// MinDrainDelay is the shortest drain delay with which HAProxy notices the shutdown of a server
// before it refuses requests: the time of the checks, and one second more.
const MinDrainDelay = haproxy.Fall*haproxy.CheckInterval + time.Second

// memoryMiB returns the memory limit of a container or job: what serving needs, plus a quarter for
// the program and the page cache.
func (o *Options) memoryMiB() int64 { return (o.Memory+o.Memory/4)>>20 + 256 }

// toHAProxy writes a configuration of HAProxy for replicas.
func toHAProxy(s *source) ([]File, error) {
	if len(s.o.Replicas) == 0 {
		return nil, errNoReplicas
	}
	out := s.sheet()
	haproxy.Write(out, haproxy.Config{Replicas: s.o.Replicas, DrainDelay: s.o.DrainDelay, Grace: s.o.Grace,
		Capacity: s.o.Capacity})
	return []File{{"haproxy.cfg", out.String()}}, nil
}

var errNoReplicas = errors.New("name the servers with --replicas, such as --replicas 10.0.0.1:8080,10.0.0.2:8080")

// toSlurm writes batch scripts that tune and serve, and a script that keeps the list of endpoints.
func toSlurm(s *source) ([]File, error) {
	var tune, serve, endpoints sheet.Sheet
	slurm.Tune(&tune)
	slurm.Serve(&serve, slurm.Config{CPUs: s.b.Host.Allowed().Count(), Siblings: hasSiblings(s.b),
		MemoryMiB: s.o.memoryMiB(), DrainDelay: s.o.DrainDelay, Grace: s.o.Grace})
	slurm.Endpoints(&endpoints)
	return []File{{"tune.sbatch", tune.String()}, {"serve.sbatch", serve.String()},
		{"endpoints.sh", endpoints.String()}}, nil
}

// hasSiblings reports whether the plan was made for several PUs of one core.
func hasSiblings(b *bundle.Bundle) bool {
	return slices.ContainsFunc(b.Host.Machine.Objects, func(o topotree.Object) bool {
		return o.Kind == topotree.KindCore && o.CPUs.Intersect(b.Host.Allowed()).Count() > 1
	})
}

// toKubernetes writes manifests of pods with guaranteed quality of service, for nodes whose kubelet
// has the static CPU manager policy.
func toKubernetes(s *source) ([]File, error) {
	out := s.sheet()
	kubernetes.Write(out, kubernetes.Config{Image: s.o.Image, Kind: hostkey.OfBundle(s.b).Kind(),
		PUs: s.b.Host.Allowed().String(), CPUs: s.b.Host.Allowed().Count(), MemoryMiB: s.o.memoryMiB(),
		DrainDelay: s.o.DrainDelay, Grace: s.o.Grace})
	return []File{{"sandwich.yaml", out.String()}}, nil
}

// toLLMD writes the configuration of llm-d's endpoint picker, the list of endpoints, and that of
// Envoy.
func toLLMD(s *source) ([]File, error) {
	if len(s.o.Replicas) == 0 {
		return nil, errNoReplicas
	}
	c := llmd.Config{Replicas: s.o.Replicas, Prefill: prefillRate(s.b), Kind: hostkey.OfBundle(s.b).Kind()}
	if err := c.Check(); err != nil {
		return nil, err
	}
	picker, endpoints, envoy := s.sheet(), s.sheet(), s.sheet()
	llmd.Picker(picker, c)
	llmd.Endpoints(endpoints, c)
	llmd.Envoy(envoy)
	return []File{{"epp.yaml", picker.String()}, {"endpoints.yaml", endpoints.String()},
		{"envoy.yaml", envoy.String()}}, nil
}

// prefillRate returns the largest median prefill rate in tokens/s that the race of tune measured
// for the plan, or 0 without one.
func prefillRate(b *bundle.Bundle) (rate float64) {
	prefix := phase.Prefill.String() + ", " + evidence.WinnerMark
	for _, a := range b.Evidence.Finalists {
		if strings.HasPrefix(a.Name, prefix) && len(a.Samples) > 0 {
			rate = max(rate, num.Median(a.Samples))
		}
	}
	return rate
}
