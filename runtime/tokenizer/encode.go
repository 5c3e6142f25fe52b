package tokenizer

import (
	"context"
	"strings"
)

// Encode appends the ids of text to dst and returns the result. Bytes that are not valid UTF-8 are
// encoded one by one. It takes O(n log n) time in the length of the text.
func (t *Tokenizer) Encode(dst []int32, text string, o EncodeOptions) []int32 {
	dst, _ = t.EncodeContext(context.Background(), dst, text, o)
	return dst
}

// EncodeContext appends the ids of text as Encode does. It returns the error of ctx soon after ctx
// ends.
func (t *Tokenizer) EncodeContext(ctx context.Context, dst []int32, text string, o EncodeOptions) ([]int32, error) {
	return t.encodeText(ctx, dst, guardedText{text: text}, o)
}

// encodeText appends the ids of a text. Each part between special tokens is encoded as a whole,
// even if only some of it is guarded.
func (t *Tokenizer) encodeText(ctx context.Context, dst []int32, text guardedText, o EncodeOptions) ([]int32, error) {
	sc := t.scratches.Get().(*scratch)
	defer t.release(sc)
	sc.Begin(ctx, o.Limit)
	if o.AddSpecial && t.addBOS {
		dst = append(dst, t.bos)
	}
	find := guards{trusted: t.user}
	switch {
	case len(text.guarded) > 0:
		find = *t.guards()
	case o.ParseSpecial:
		find.trusted = t.special
	}
	afterSpecial := true
	for from := text.from; from < len(text.text) && !sc.Ended; {
		at, n, token := find.find(&text, from)
		if at > from {
			dst = t.encode(t, dst, sc, text.text[from:at], afterSpecial)
		}
		if token >= 0 {
			dst, afterSpecial = append(dst, token), true
			sc.Made(1, len(dst))
		}
		from = at + n
		if token >= 0 && t.attrs[token]&attrStrips != 0 {
			from = len(text.text) - len(strings.TrimLeft(text.text[from:], " \t\n\v\f\r"))
		}
	}
	if o.AddSpecial && t.addEOS {
		dst = append(dst, t.eos)
	}
	return dst, ctx.Err()
}

// EncodePair encodes a query and a document in the form that rerank models read: the model's
// template, or else [BOS] query [EOS] [SEP] document [EOS] without the tokens that the model does
// not ask for. Control tokens spelled in query or document are encoded as text. It stops early as
// EncodeContext and EncodeOptions.Limit describe.
func (t *Tokenizer) EncodePair(ctx context.Context, query, document string, limit int) ([]int32, error) {
	o := EncodeOptions{Limit: limit}
	if t.pair != "" {
		o.ParseSpecial = true
		return t.encodeText(ctx, nil, fillPair(t.pair, query, document), o)
	}
	var ids []int32
	if t.addBOS {
		ids = append(ids, t.bos)
	}
	ids, err := t.EncodeContext(ctx, ids, query, o)
	if err != nil {
		return nil, err
	}
	if t.addEOS {
		ids = append(ids, t.eos)
	}
	if t.addSep {
		ids = append(ids, t.sep)
	}
	if ids, err = t.EncodeContext(ctx, ids, document, o); t.addEOS {
		ids = append(ids, t.eos)
	}
	return ids, err
}

// fillPair replaces {query} and {document} in a template.
func fillPair(template, query, document string) (filled guardedText) {
	var text strings.Builder
	for template != "" {
		at, value := len(template), ""
		name := ""
		for n, v := range map[string]string{"{query}": query, "{document}": document} {
			if i := strings.Index(template, n); i >= 0 && i < at {
				at, name, value = i, n, v
			}
		}
		text.WriteString(template[:at])
		if value != "" {
			filled.guarded = append(filled.guarded, span{text.Len(), text.Len() + len(value)})
			text.WriteString(value)
		}
		template = template[at+len(name):]
	}
	filled.text = text.String()
	return filled
}

// Truncate shortens ids to n tokens, n at least 1. If Encode adds EOS, the last token stays EOS.
func (t *Tokenizer) Truncate(ids []int32, n int) []int32 {
	if len(ids) <= n {
		return ids
	}
	last := ids[len(ids)-1]
	ids = ids[:n]
	if t.addEOS && last == t.eos {
		ids[n-1] = last
	}
	return ids
}

// TruncatePair shortens the result of EncodePair to n tokens. It drops the last tokens of the
// document and keeps what follows the document, unless nothing else would be left. n must be more
// than the number of tokens of the query with an empty document. The error is the error of ctx.
func (t *Tokenizer) TruncatePair(ctx context.Context, ids []int32, query string, n int) ([]int32, error) {
	if len(ids) <= n {
		return ids, nil
	}
	var after []int32
	if _, rest, _ := strings.Cut(t.pair, "{document}"); rest != "" {
		var err error
		after, err = t.encodeText(ctx, nil, fillPair(rest, query, "{document}"),
			EncodeOptions{ParseSpecial: true, Limit: n})
		if err != nil {
			return nil, err
		}
	} else if t.pair == "" && t.addEOS {
		after = []int32{t.eos}
	}
	keep := max(0, n-len(after))
	return append(ids[:keep:keep], after...)[:n], nil
}

// keepScratch is the capacity of the largest word, in symbols, whose memory is kept for later
// calls.
const keepScratch = 1 << 16

func (t *Tokenizer) release(sc *scratch) {
	sc.Finish()
	if cap(sc.word) > keepScratch || cap(sc.text) > keepScratch {
		return
	}
	t.scratches.Put(sc)
}
