package serve

import (
	"os"
	"sync"
	"time"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/server/tracing"
)

// stages records the stages of loading a model and limits the reports of them: one for each stage,
// and one every reportInterval.
type stages struct {
	mu   sync.Mutex
	list []stage
	at   time.Time // of the last report
}

// stage is one stage of loading.
type stage struct {
	name  string
	began time.Time
}

const reportInterval = 10 * time.Second

// report calls tell if the stage is new or the last report is old.
func (s *stages) report(name string, tell func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	fresh := len(s.list) == 0 || s.list[len(s.list)-1].name != name
	if fresh && len(s.list) < maxStages {
		s.list = append(s.list, stage{name, now})
	}
	if fresh || now.Sub(s.at) > reportInterval {
		s.at = now
		tell()
	}
}

// maxStages bounds the recorded stages.
const maxStages = 64

// trace records a trace of loading, which has ended, with a span for each stage.
func (s *stages) trace(t *tracing.Tracer, model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return
	}
	now := time.Now()
	r := t.Start("", s.list[0].began)
	for i, of := range s.list {
		ended := now
		if i+1 < len(s.list) {
			ended = s.list[i+1].began
		}
		r.Child(of.name, of.began, ended, "")
	}
	r.End("load model", now, "", tracing.Attr{Key: "gen_ai.request.model", Value: model})
}

// openTracer returns the tracer that --otlp-endpoint and the variables OTEL_* describe, or nil.
func openTracer(endpoint string) (*tracing.Tracer, error) {
	o, ok, err := tracing.FromEnvironment(endpoint, os.Getenv)
	if err != nil || !ok {
		return nil, err
	}
	o.Version, o.Note = build.Version(), show.Notice
	return tracing.New(o), nil
}
