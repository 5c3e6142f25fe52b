package status

import (
	"encoding/json"
	"net/http"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
)

// source is a Generator that reports its state. Methods may be called concurrently.
type source interface {
	Status() Live
	Plan() *Plan // nil: unknown
}

// API serves the state of the models of a runner.
type API struct{ *generation.Runner }

// Status handles /v1/sandwich/status. The field model of the query chooses one of several models;
// w must be an *exchange.Exchange.
func (s *API) Status(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(of source) any {
		live := of.Status()
		for _, m := range s.Router.Models(generation.Key(w.(*exchange.Exchange).Salt)) {
			if m.State != "" {
				live.Models = append(live.Models, Model{m.ID, m.State})
			}
		}
		return live
	})
}

// Plan handles /v1/sandwich/plan like Status.
func (s *API) Plan(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(of source) any {
		if p := of.Plan(); p != nil {
			return p
		}
		return nil
	})
}

// answer writes what about returns for the model of a request. A key may ask about the models that
// it may use.
func (s *API) answer(w http.ResponseWriter, r *http.Request, about func(of source) any) {
	var g any = generation.Only(s.Router)
	if g == nil {
		name := r.URL.Query().Get("model")
		m, ok := s.Router.Route(name, generation.Key(w.(*exchange.Exchange).Salt))
		if !ok {
			generation.UnknownModel(name).Write(w)
			return
		}
		defer m.Close()
		g = m
	}
	var v any
	if of, ok := g.(source); ok {
		v = about(of)
	}
	if v == nil {
		apierr.New(http.StatusNotFound, apierr.TypeInvalid, "not_supported", "this server reports no status").Write(w)
		return
	}
	write(w, v)
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
