package tokenizer

import (
	"fmt"
	"strings"
	"sync"

	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
)

// readChat selects the chat format. A template is parsed when it is first used, because most
// programs that load a tokenizer never render a conversation.
func (t *Tokenizer) readChat(meta Metadata) {
	source, ok := meta.String(keyTemplate)
	source = strings.Clone(source) // the file may be unmapped before the template is parsed
	t.calls = sync.OnceValue(func() *toolcall.Format { return toolcall.Of(source) })
	spelled := source
	if ok && source != "" {
		t.chat = sync.OnceValues(func() (*chatFormat, error) {
			template, err := jinja.Parse(source)
			if err != nil {
				return nil, fmt.Errorf("the model's chat template cannot be used: %w", err)
			}
			return &chatFormat{"template", chatTemplate{template}.render}, nil
		})
	} else {
		format := t.fallbackFormat()
		t.chat = func() (*chatFormat, error) { return format, nil }
		spelled = fallbackMarks
	}
	t.guards = sync.OnceValue(func() *guards { return t.newGuards(spelled + t.pair) })
}
