package tokenizer

import (
	"context"
	"strings"
)

// Encode appends the ids of text to dst and returns it. Text that is not UTF-8 is encoded byte by
// byte where it is not. Time is n log n in the length of the text at worst.
func (t *Tokenizer) Encode(dst []int32, text string, o EncodeOptions) []int32 {
	dst, _ = t.EncodeContext(context.Background(), dst, text, o)
	return dst
}

// EncodeContext is Encode for text of strangers: it returns soon after ctx ended, with its error.
func (t *Tokenizer) EncodeContext(ctx context.Context, dst []int32, text string, o EncodeOptions) ([]int32, error) {
	sc := t.scratches.Get().(*scratch)
	defer t.release(sc)
	sc.begin(ctx, o.Limit)
	if o.AddSpecial && t.addBOS {
		dst = append(dst, t.bos)
	}
	find := t.user
	if o.ParseSpecial {
		find = t.special
	}
	afterSpecial := true
	for len(text) > 0 && !sc.ended {
		at, n, token := find.find(text)
		if at > 0 {
			dst = t.encode(t, dst, sc, text[:at], afterSpecial)
		}
		if token >= 0 {
			dst, afterSpecial = append(dst, token), true
			sc.made(1, len(dst))
		}
		text = text[at+n:]
		if token >= 0 && t.attrs[token]&attrStrips != 0 {
			text = strings.TrimLeft(text, " \t\n\v\f\r")
		}
	}
	if o.AddSpecial && t.addEOS {
		dst = append(dst, t.eos)
	}
	return dst, ctx.Err()
}

// EncodePair encodes a query with a document that may answer it, as rerank models read them: by the
// model's template, else [BOS] query [EOS] [SEP] document [EOS], of which those stand that the
// model asks for. It stops as EncodeContext does, and as EncodeOptions.Limit says.
func (t *Tokenizer) EncodePair(ctx context.Context, query, document string, limit int) ([]int32, error) {
	o := EncodeOptions{Limit: limit}
	if t.pair != "" {
		o.ParseSpecial = true
		return t.EncodeContext(ctx, nil, strings.NewReplacer("{query}", query, "{document}", document).Replace(t.pair),
			o)
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

// readPair reads how pairs of texts are parted. A text of WordPiece ends in what would part it.
func (t *Tokenizer) readPair(meta Metadata) {
	t.pair, _ = meta.String(keyPairTemplate)
	t.pair = strings.Clone(t.pair)
	id, ok := meta.Uint(keySeparator)
	if ok = ok && id < uint64(len(t.attrs)); ok {
		t.sep = int32(id)
	}
	t.addSep = ok && t.ending == "" && flagOr(meta, keyAddSep, true)
}

// Truncate cuts a text to n tokens, n at least 1; the token that stands behind every text keeps its
// place at the end.
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

// TruncatePair cuts a pair of EncodePair to n tokens, the document's last ones; what stands behind
// the document stays, unless nothing else would. n is more than what EncodePair makes of the query
// and an empty document. The error is ctx's.
func (t *Tokenizer) TruncatePair(ctx context.Context, ids []int32, query string, n int) ([]int32, error) {
	if len(ids) <= n {
		return ids, nil
	}
	var behind []int32
	if _, rest, _ := strings.Cut(t.pair, "{document}"); rest != "" {
		var err error
		behind, err = t.EncodeContext(ctx, nil, strings.ReplaceAll(rest, "{query}", query),
			EncodeOptions{ParseSpecial: true, Limit: n})
		if err != nil {
			return nil, err
		}
	} else if t.pair == "" && t.addEOS {
		behind = []int32{t.eos}
	}
	keep := max(0, n-len(behind))
	return append(ids[:keep:keep], behind...)[:n], nil
}

// EncodeChat encodes what Chat has rendered: special tokens that the template spells are
// recognized, BOS stands in front once if the model asks for it (whether or not the template writes
// it), EOS is not added. It stops as EncodeContext does, and as EncodeOptions.Limit says. Called by
// ChatIDs and by servers, which measure the text before.
func (t *Tokenizer) EncodeChat(ctx context.Context, text string, limit int) ([]int32, error) {
	var ids []int32
	if t.addBOS {
		ids = append(ids, t.bos)
		if spelled := string(t.Piece(t.bos)); spelled != "" {
			text = strings.TrimPrefix(text, spelled)
		}
	}
	return t.EncodeContext(ctx, ids, text, EncodeOptions{ParseSpecial: true, Limit: limit})
}

// scratch is the state of one EncodeContext, whose memory is reused.
type scratch struct {
	word []int32
	heap []uint64 // of a long word; see mergeLong
	text []byte   // WordPiece: a word; Unigram: the normalized text
	best []best   // Unigram

	done  <-chan struct{}
	limit int  // tokens; 0 for none
	work  int  // symbols since done was last looked at
	ended bool // nobody wants the rest
}

func (sc *scratch) begin(ctx context.Context, limit int) {
	sc.done, sc.limit, sc.work, sc.ended = ctx.Done(), limit, 0, false
}

// made accounts for n symbols of work, and for the number of tokens so far.
func (sc *scratch) made(n, tokens int) {
	if sc.limit > 0 && tokens > sc.limit {
		sc.ended = true
	}
	sc.poll(n)
}

// poll accounts for n symbols of work and reports whether it is time to return, whatever is left.
func (sc *scratch) poll(n int) bool {
	if sc.work += n; sc.work >= pollEvery {
		sc.work = 0
		select {
		case <-sc.done:
			sc.ended = true
		default:
		}
	}
	return sc.ended
}

// pollEvery is about a millisecond of work.
const pollEvery = 1 << 13

// keepScratch is the largest word, in symbols, whose memory is kept for the next call.
const keepScratch = 1 << 16

func (t *Tokenizer) release(sc *scratch) {
	sc.done = nil
	if cap(sc.word) > keepScratch || cap(sc.text) > keepScratch {
		return
	}
	t.scratches.Put(sc)
}
