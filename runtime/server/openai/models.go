package openai

import (
	"net/http"
	"strconv"
	"strings"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
)

// Models handles /v1/models.
func (s *API) Models(w http.ResponseWriter, r *http.Request) {
	b := []byte(`{"object":"list","data":[`)
	for i, m := range s.Gen.Models() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModel(b, &m)
	}
	jsontext.Write(w, http.StatusOK, append(b, "]}"...))
}

// Model handles /v1/models/{id}.
func (s *API) Model(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/v1/models/")
	for _, m := range s.Gen.Models() {
		if m.ID == id {
			jsontext.Write(w, http.StatusOK, appendModel(nil, &m))
			return
		}
	}
	apierr.New(http.StatusNotFound, apierr.TypeInvalid, "model_not_found", "unknown model %q; see /v1/models",
		jsontext.Clip(id)).Write(w)
}

// appendModel appends a model of /v1/models.
func appendModel(b []byte, m *generation.ModelInfo) []byte {
	b = jsontext.AppendString(append(b, `{"id":`...), m.ID)
	b = strconv.AppendInt(append(b, `,"object":"model","created":`...), m.Created.Unix(), 10)
	b = jsontext.AppendInt(append(b, `,"owned_by":"sandwich","max_model_len":`...), m.Context)
	return append(b, '}')
}
