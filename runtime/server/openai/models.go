package openai

import (
	"net/http"
	"slices"
	"strconv"

	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
)

// Models handles /v1/models.
func (s *API) Models(w http.ResponseWriter, r *http.Request) {
	b := []byte(`{"object":"list","data":[`)
	for i, m := range s.Router.Models(generation.Key(w.(*exchange.Exchange).Salt)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModel(b, &m)
	}
	jsontext.Write(w, http.StatusOK, append(b, "]}"...))
}

// Model handles /v1/models/{id}. The id is a path value of the request.
func (s *API) Model(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	for _, m := range s.Router.Models(generation.Key(w.(*exchange.Exchange).Salt)) {
		if m.ID == id || slices.Contains(m.Aliases, id) {
			jsontext.Write(w, http.StatusOK, appendModel(nil, &m))
			return
		}
	}
	generation.UnknownModel(id).Write(w)
}

// appendModel appends a model of /v1/models.
func appendModel(b []byte, m *generation.ModelInfo) []byte {
	b = jsontext.AppendString(append(b, `{"id":`...), m.ID)
	b = strconv.AppendInt(append(b, `,"object":"model","created":`...), m.Created.Unix(), 10)
	b = jsontext.AppendInt(append(b, `,"owned_by":"sandwich","max_model_len":`...), m.Context)
	if m.State != "" {
		b = jsontext.AppendString(append(b, `,"state":`...), m.State)
	}
	for i, name := range m.Aliases {
		sep := `,`
		if i == 0 {
			sep = `,"aliases":[`
		}
		b = jsontext.AppendString(append(b, sep...), name)
	}
	if len(m.Aliases) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}
