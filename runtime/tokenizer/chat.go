package tokenizer

type chatFormat struct{}

func (t *Tokenizer) readChat(meta Metadata) {}
