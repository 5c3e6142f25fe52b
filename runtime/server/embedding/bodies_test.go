package embedding

import (
	"encoding/json"
	"testing"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/request"
)

// FuzzReadBodies checks that every body is refused in the right format or yields texts within the
// limits.
func FuzzReadBodies(f *testing.F) {
	for _, seed := range []string{`{"input":"a"}`, `{"input":[[1],[2,3]]}`, `{"input":["a",null]}`,
		`{"input":[[null]]}`,
		`{"query":"q","documents":[{"text":"a"},"b"]}`, `{"query":"q","texts":[[]]}`, `{"input":[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var e embedBody
		var r rankBody
		for _, parse := range []func([]byte) (*request.Call, *apierr.Error){e.parse, r.parse} {
			if _, e := parse(body); e != nil && (e.Status != 400 || e.Message == "" || !json.Valid(e.Body())) {
				t.Fatalf("refusal %+v", e)
			}
		}
		if len(e.texts.Texts) > MaxTexts || len(e.texts.Prompts) > MaxTexts || len(r.documents) > MaxTexts {
			t.Fatal("too many texts")
		}
	})
}
