package status

import (
	"encoding/json"
	"net/http"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
)

// source is a Generator that reports its state. Methods may be called concurrently.
type source interface {
	Status() Live
	Plan() *Plan // nil: unknown
}

// API serves the state of the generator of a runner that serves one model.
type API struct{ *generation.Runner }

// Status handles /v1/sandwich/status.
func (s *API) Status(w http.ResponseWriter, _ *http.Request) {
	g, ok := generation.Only(s.Router).(source)
	if !ok {
		unknown(w)
		return
	}
	write(w, g.Status())
}

// Plan handles /v1/sandwich/plan.
func (s *API) Plan(w http.ResponseWriter, _ *http.Request) {
	g, ok := generation.Only(s.Router).(source)
	if !ok || g.Plan() == nil {
		unknown(w)
		return
	}
	write(w, g.Plan())
}

func write(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil { // a figure is not finite
		apierr.New(http.StatusInternalServerError, apierr.TypeServer, "internal_error",
			"the status cannot be written as JSON: %v", err).Write(w)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	jsontext.Write(w, http.StatusOK, body)
}

func unknown(w http.ResponseWriter) {
	apierr.New(http.StatusNotFound, apierr.TypeInvalid, "not_supported", "this server reports no status").Write(w)
}
