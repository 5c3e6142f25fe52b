package anthropic

import (
	"net/http/httptest"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/request"
)

// TestBlocks checks stop reasons, and that truncated calls are left out if they would have to be
// JSON.
func TestBlocks(t *testing.T) {
	if got := string(appendStop(nil, &api.Result{Finish: api.FinishStop, StopString: "\n"})); got !=
		`"stop_reason":"stop_sequence","stop_sequence":"\n"` {
		t.Error(got)
	}
	w := httptest.NewRecorder()
	m := &blocks{Stream: &exchange.Stream{Answer: exchange.NewAnswer("m", true), W: w}, call: &request.Call{}}
	m.id, m.name, m.kind = "c", "pick", "tool_use"
	m.add("", `{"a":`)
	m.closeBlock(true)
	if len(m.whole) > 0 {
		t.Errorf("%s", m.whole)
	}
}
