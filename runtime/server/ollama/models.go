package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// ollamaVersion is the version of ollama whose API is implemented; clients check it.
const ollamaVersion = "0.12.11"

// Version handles /api/version.
func (s *API) Version(w http.ResponseWriter, _ *http.Request) {
	jsontext.Write(w, http.StatusOK, []byte(`{"version":"`+ollamaVersion+`"}`))
}

// details describes a model for /api/tags, /api/ps and /api/show.
func details(m *generation.ModelInfo) map[string]any {
	return map[string]any{"parent_model": "", "format": "gguf", "family": m.Arch, "families": []string{m.Arch},
		"parameter_size": count(m.Parameters), "quantization_level": m.Type}
}

// count formats a number of parameters.
func count(n int64) string {
	switch f := float64(n); {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB", f/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", f/1e6)
	}
	return fmt.Sprint(n)
}

// listed returns the entry of a model in a list.
func listed(m *generation.ModelInfo) map[string]any {
	return map[string]any{"name": m.ID, "model": m.ID, "modified_at": m.Created.UTC().Format(time.RFC3339Nano),
		"size": m.Bytes, "digest": m.Digest, "details": details(m)}
}

// Tags handles /api/tags: the available models.
func (s *API) Tags(w http.ResponseWriter, _ *http.Request) {
	list := []map[string]any{}
	for _, m := range s.Router.Models(generation.Key(w.(*exchange.Exchange).Salt)) {
		list = append(list, listed(&m))
	}
	body, _ := json.Marshal(map[string]any{"models": list})
	jsontext.Write(w, http.StatusOK, body)
}

// Running handles /api/ps: the loaded models, which never expire.
func (s *API) Running(w http.ResponseWriter, _ *http.Request) {
	list := []map[string]any{}
	for _, m := range s.Router.Models(generation.Key(w.(*exchange.Exchange).Salt)) {
		if m.State != "" && m.State != generation.StateLoaded {
			continue
		}
		o := listed(&m)
		delete(o, "modified_at")
		o["expires_at"], o["size_vram"] = time.Unix(1<<33, 0).UTC().Format(time.RFC3339), 0
		o["context_length"] = m.Context
		list = append(list, o)
	}
	body, _ := json.Marshal(map[string]any{"models": list})
	jsontext.Write(w, http.StatusOK, body)
}

// Show handles /api/show.
func (s *API) Show(w http.ResponseWriter, r *http.Request) {
	s.Handle(w, r, func(data []byte) (*request.Call, *apierr.Error) {
		var b struct {
			Model, Name *string
		}
		if e := fields.Decode(data, &b, ""); e != nil {
			return nil, e
		}
		if fields.String(b.Model)+fields.String(b.Name) == "" {
			return nil, apierr.Invalid("model", "is missing; send its name")
		}
		c := &request.Call{}
		if c.Model = fields.String(b.Model); c.Model == "" {
			c.Model = fields.String(b.Name)
		}
		return c, nil
	}, func(x *exchange.Exchange, _ *http.Request, _ *request.Call, g generation.Generator) {
		m := g.Model()
		can := []string{"completion", "tools"}
		if m.Vector > 0 {
			can = []string{"embedding"}
		}
		body, _ := json.Marshal(map[string]any{"modelfile": "", "parameters": "", "template": m.Template, "license": "",
			"modified_at": m.Created.UTC().Format(time.RFC3339Nano), "details": details(&m), "capabilities": can,
			"model_info": map[string]any{"general.architecture": m.Arch, "general.parameter_count": m.Parameters,
				m.Arch + ".context_length": m.Context}})
		jsontext.Write(x, http.StatusOK, body)
	})
}
