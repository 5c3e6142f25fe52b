package vocab

import "sandwich/runtime/gguf"

// writeTemplate writes a chat template unless the file has one.
func writeTemplate(w *gguf.Writer, template string) {
	if !w.Has(TemplateKey) {
		w.SetString(TemplateKey, template)
	}
}

const TemplateKey = "tokenizer.chat_template"

// ChatML is a chat template similar to that of the family, for synthetic vocabularies.
const ChatML = `{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`
