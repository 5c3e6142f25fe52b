package synth

import (
	"fmt"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/vocab"
)

// BorrowVocabulary returns a configuration whose synthetic model has the tokenizer of f, so that
// texts have the same number of tokens as with f's model; a synthetic vocabulary has about twice as
// many. If f has fewer tokens than the configuration, synthetic ones follow; if it has more, the
// vocabulary grows. It fails unless f has byte-level BPE. f may be closed afterwards.
func BorrowVocabulary(c model.Config, f *gguf.File) (model.Config, error) {
	b, err := vocab.Copy(f)
	if err != nil {
		return c, err
	}
	c.Vocab = max(c.Vocab, b.Len())
	c.Tokenizer = b
	if c.Template == "" {
		c.Template, _ = f.String(vocab.TemplateKey)
	}
	if c.Template == "" {
		c.Template = vocab.ChatML
	}
	return c, nil
}

// writeVocabulary writes the metadata of a tokenizer of the architecture's kind.
func writeVocabulary(w *gguf.Writer, c model.Config) error {
	if c.Vocab < vocab.MinTokens {
		return fmt.Errorf("a synthetic vocabulary of %d tokens is too small; use at least %d", c.Vocab, vocab.MinTokens)
	}
	arch, err := arch.Find(c.Arch)
	if err != nil {
		return err
	}
	if c.Template != "" {
		w.SetString(vocab.TemplateKey, c.Template)
	}
	if c.Tokenizer != nil {
		c.Tokenizer.WriteTokens(w, c.Vocab)
		return nil
	}
	arch.Vocabulary(w, c.Vocab)
	return nil
}
