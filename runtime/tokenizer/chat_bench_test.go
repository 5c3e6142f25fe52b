package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/refdata"
)

// BenchmarkChatIDs renders and encodes a conversation of about 16,000 tokens by published
// templates.
func BenchmarkChatIDs(b *testing.B) {
	files := refdata.Glob(b, "parity2/templates/*.jinja")
	tok := vocab(b, "qwen2")
	prose := english(b)
	msgs := []api.Message{{Role: "system", Content: prose[:4000]}}
	for i, at := 0, 4000; at < 68_000; i++ {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		n := 400 + i*97%3000
		msgs = append(msgs, api.Message{Role: role, Content: prose[at : at+n]})
		at += n
	}
	if msgs[len(msgs)-1].Role == "assistant" {
		msgs = append(msgs, api.Message{Role: "user", Content: "Go on."})
	}
	chat, calls, guards := tok.chat, tok.calls, tok.guards
	defer func() { tok.chat, tok.calls, tok.guards = chat, calls, guards }()
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strings.TrimSuffix(filepath.Base(file), ".jinja"), func(b *testing.B) {
			tok.readChat(fields{keyTemplate: string(source)})
			b.ReportAllocs()
			var ids []int32
			for b.Loop() {
				if ids, err = tok.ChatIDs(b.Context(), msgs, true); err != nil {
					b.Skipf("the template refuses this conversation: %v", err)
				}
			}
			b.ReportMetric(float64(len(ids)), "tokens")
		})
	}
}
