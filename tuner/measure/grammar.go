package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"sandwich/internal/num"
	"sandwich/runtime/grammar"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure/spread"
)

// GrammarSource is the source of a grammar: Bytes is what a client sends.
type GrammarSource struct {
	Bytes   int
	Compile func() (*grammar.Grammar, error)
}

// GrammarOfSchema returns a JSON Schema as a source.
func GrammarOfSchema(schema string) GrammarSource {
	return GrammarSource{len(schema), func() (*grammar.Grammar, error) { return grammar.FromSchema([]byte(schema)) }}
}

// GrammarOptions configure TimeGrammar.
type GrammarOptions struct {
	Name    string
	Source  GrammarSource
	Vocab   *grammar.Vocab
	Answers int // each with a newly compiled grammar
	Tokens  int // maximum per answer
	// Draw draws a token from a row of logits; allowed is as in api.Constraint.Allowed.
	Draw func(logits []float32, allowed []uint64) int32
}

// GrammarRow is the cost of constrained answers per token. Its JSON is stable.
type GrammarRow struct {
	Schema  string  `json:"schema"`
	Bytes   int     `json:"schema_bytes"`
	Vocab   int     `json:"vocabulary"`
	Answers int     `json:"answers"`
	Tokens  int     `json:"tokens"`
	Cut     int     `json:"cut"`
	Compile float64 `json:"compile_s"`    // median of the answers
	First   float64 `json:"first_mask_s"` // including the Matcher, median of the answers
	Mean    float64 `json:"mask_mean_s"`  // of states met for the first time or again within an answer
	Median  float64 `json:"mask_med_s"`
	P99     float64 `json:"mask_p99_s"`
	Max     float64 `json:"mask_max_s"`
	Again   float64 `json:"mask_again_p99_s"` // requested a second time
	Memory  int64   `json:"memory_bytes"`     // of the largest answer's automata, states and shared masks
	Accept  float64 `json:"accept_med_s"`
	Plain   float64 `json:"sample_plain_med_s"`       // sampling without a mask
	Sample  float64 `json:"sample_constrained_med_s"` // applying the mask and sampling
}

// TimeGrammar samples answers from random logits as serving does: compute the mask, apply it,
// sample, accept. Nothing is cached between answers: each compiles its grammar and computes its
// masks. Times are processor time of the thread, so that other processes do not count. Errors are
// those of the source.
func TimeGrammar(ctx context.Context, o GrammarOptions) (GrammarRow, error) {
	row := GrammarRow{Schema: o.Name, Bytes: o.Source.Bytes, Vocab: o.Vocab.Size(), Answers: o.Answers}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	rng := rand.New(rand.NewPCG(1, 2))
	var times grammarTimes
	for range o.Answers {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		whole, err := times.answer(o, rng)
		if err != nil {
			return row, err
		}
		if !whole {
			row.Cut++
		}
	}
	slices.Sort(times.masks)
	n := len(times.masks)
	row.Tokens = n
	row.Compile, row.First = spread.Summarize(times.compile).Median, spread.Summarize(times.first).Median
	for _, t := range times.masks {
		row.Mean += t / float64(n)
	}
	slices.Sort(times.again)
	row.Again, row.Memory = num.Quantile(times.again, 0.99), times.memory
	masks := spread.Summarize(times.masks)
	row.Median, row.P99, row.Max = masks.Median, num.Quantile(times.masks, 0.99), masks.Max
	row.Accept, row.Plain = spread.Summarize(times.accept).Median, spread.Summarize(times.plain).Median
	row.Sample = spread.Summarize(times.sample).Median
	return row, nil
}

// grammarTimes holds the seconds of every step of all answers.
type grammarTimes struct {
	compile, first, masks, again, accept, plain, sample []float64
	memory                                              int64
}

// answer samples one answer and reports whether it was complete.
func (t *grammarTimes) answer(o GrammarOptions, rng *rand.Rand) (whole bool, err error) {
	logits := make([]float32, o.Vocab.Size())
	for i := range logits {
		logits[i] = float32(4 * rng.NormFloat64())
	}
	timed := func(to *[]float64, f func()) {
		start := pool.ThreadTime()
		f()
		*to = append(*to, (pool.ThreadTime() - start).Seconds())
	}
	var g *grammar.Grammar
	if timed(&t.compile, func() { g, err = o.Source.Compile() }); err != nil {
		return false, err
	}
	var cold *grammar.Matcher
	timed(&t.first, func() {
		cold = g.Matcher(o.Vocab)
		cold.Mask(o.Tokens)
	})
	cold.End()
	if g, err = o.Source.Compile(); err != nil { // compile anew
		return false, err
	}
	m := g.Matcher(o.Vocab)
	defer m.End()
	defer func() { t.memory = max(t.memory, g.Memory()+m.Memory()) }()
	for left := o.Tokens; left > 0; left-- {
		var allowed []uint64
		timed(&t.masks, func() { allowed = m.Allowed(left) })
		timed(&t.again, func() { allowed = m.Allowed(left) })
		timed(&t.plain, func() { o.Draw(logits, nil) })
		var id int32
		timed(&t.sample, func() { id = o.Draw(logits, allowed) })
		before := m.CanEnd()
		timed(&t.accept, func() { err = m.Accept(id) })
		if err != nil {
			return false, fmt.Errorf("a token of its mask was refused: %w", err)
		}
		if m.MustEnd() || before && o.Vocab.Ends(id) {
			return true, nil
		}
		i := rng.IntN(len(logits)) // other logits by a cheap rotation
		logits = append(logits[i:len(logits):len(logits)], logits[:i]...)
	}
	return m.CanEnd(), nil
}

// GrammarVocab returns a vocabulary like those of models: all bytes, words with and without a
// leading space, groups of JSON punctuation, white space, and multi-byte characters. Token 0 ends
// an answer.
func GrammarVocab(size int) *grammar.Vocab {
	rng := rand.New(rand.NewPCG(3, 4))
	text, seen := [][]byte{nil}, map[string]bool{}
	add := func(s string) {
		if !seen[s] && len(text) < size {
			seen[s] = true
			text = append(text, []byte(s))
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for _, s := range []string{`{"`, `":`, `": `, `":"`, `": "`, `",`, `","`, `", "`, `"}`, `"},`, `"},{"`, `["`, `"]`,
		`[]`, `{}`, `}}`, `]}`, `}]`, `\"`, `\n`, `\\`, `\u00`, "\r\n", "```", "true", "false", "null"} {
		add(s)
	}
	for n := range 1000 {
		add(fmt.Sprint(n))
	}
	for n := range 64 {
		add(string(slices.Repeat([]byte{' '}, n+1)))
		add("\n" + string(slices.Repeat([]byte{' '}, n)))
	}
	for len(text) < size {
		add(randomWord(rng))
	}
	return grammar.NewVocab(text, []int32{0})
}

// randomWord returns a word of syllables or of multi-byte characters; one in ten has a punctuation
// mark.
func randomWord(rng *rand.Rand) string {
	var s []rune
	if rng.IntN(2) == 0 {
		s = append(s, ' ')
	}
	if rng.IntN(6) == 0 {
		for range 1 + rng.IntN(3) {
			s = append(s, rune(0x4E00+rng.IntN(0x2000)))
		}
		return string(s)
	}
	for range 1 + rng.IntN(4) {
		s = append(s, rune("bcdfghklmnprstvw"[rng.IntN(16)]), rune("aeiouy"[rng.IntN(6)]))
		if rng.IntN(3) == 0 {
			s = append(s, rune("nrstl"[rng.IntN(5)]))
		}
	}
	if rng.IntN(10) == 0 {
		const marks = ".,:;(){}[]\"\\/_-=<>\n\t"
		s = append(s, rune(marks[rng.IntN(len(marks))]))
	}
	return string(s)
}

// GrammarSources returns the default sources: any object, a record, a recursive tree, formats and
// patterns, strings of several patterns at once, strings that must not match, passwords, strings of
// some length under patterns, multiples, a form of 60 properties, an enum of 10^4, a tool set of
// some 200 KB, and free text before one of its calls.
func GrammarSources() map[string]GrammarSource {
	out := map[string]GrammarSource{}
	for name, schema := range map[string]string{
		"object": `{"type":"object"}`,
		"record": `{"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string",
			"maxLength":40}},"age":{"type":"integer","minimum":0,"maximum":150},"kind":{"enum":["red","green","blue"]},
			"when":{"type":"string","format":"date-time"}},"required":["name","tags","age"],"additionalProperties":false}`,
		"tree": `{"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array",
			"items":{"$ref":"#/$defs/node"}}},"required":["name","children"],"additionalProperties":false}},"$ref":"#/$defs/node"}`,
		"formats": `{"type":"object","additionalProperties":false,"required":["to","at","when","name","code","size","id"],
			"properties":{"to":{"type":"string","format":"email"},"at":{"type":"string","format":"uri"},
			"when":{"type":"string","format":"date-time"},"name":{"type":"string","minLength":8,"maxLength":20},
			"code":{"type":"string","pattern":"^[A-Z][a-z]+ [0-9]{2,6}$"},"note":{"type":"string","pattern":"^v.*[0-9]$"},
			"size":{"type":"number","minimum":-1.5,"maximum":1e6},"id":{"type":"string","pattern":"^\\S+$"}}}`,
		"mixed": `{"type":"array","minItems":4,"items":{"anyOf":[{"type":"string","format":"email"},{"type":"string",
			"pattern":"(foo|bar).*x"},{"type":"string","minLength":8,"maxLength":20},{"type":"string","pattern":"^\\S+$"}]}}`,
		"refused":  strings4(`"not":{"pattern":"foo|bar"}`, `"pattern":"^(?!test).*[^ ]$"`, `"pattern":"^(?!.*  )\\S.*\\S$"`),
		"password": strings4(`"pattern":"^(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])(?=.*[!@#$%]).{8,64}$"`),
		"lengths": strings4(`"minLength":3`, `"maxLength":64,"pattern":"^[a-z0-9]+(-[a-z0-9]+)*$"`,
			`"pattern":"^\\w+( \\w+){1,40}$"`, `"maxLength":100,"pattern":"a.*b"`),
		"multiples": `{"type":"array","minItems":4,"items":{"type":"integer","multipleOf":4093}}`,
		"form":      form(60),
		"enum":      enum(10_000),
		"tools":     toolSet(200 << 10),
	} {
		out[name] = GrammarOfSchema(schema)
	}
	tools := toolSet(200 << 10)
	out["text"] = GrammarSource{len(tools), func() (*grammar.Grammar, error) {
		call := grammar.InOrder(grammar.Exactly("<tool_call>\n"), grammar.Matching([]byte(tools), ""),
			grammar.Exactly("\n</tool_call>"))
		return grammar.Compose(grammar.InOrder(grammar.Without("<tool_call>"), grammar.Optional(call)))
	}}
	return out
}

// strings4 returns an object of four strings under each of some keywords.
func strings4(keywords ...string) string {
	var props, required []string
	for i, k := range keywords {
		for j := range 4 {
			props = append(props, fmt.Sprintf(`"s%d_%d":{"type":"string",%s}`, i, j, k))
			required = append(required, fmt.Sprintf(`"s%d_%d"`, i, j))
		}
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`,
		strings.Join(props, ","), strings.Join(required, ","))
}

// form returns an object of many properties, every third required, with additional ones allowed.
func form(n int) string {
	var props, required []string
	for i := range n {
		kind := []string{`{"type":"string"}`, `{"type":["integer","null"]}`, `{"enum":["yes","no",3]}`}[i%3]
		props = append(props, fmt.Sprintf(`"field_%d":%s`, i, kind))
		if i%3 == 2 {
			required = append(required, fmt.Sprintf(`"field_%d"`, i))
		}
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]}`, strings.Join(props, ","),
		strings.Join(required, ","))
}

// enum returns a choice of n names.
func enum(n int) string {
	rng := rand.New(rand.NewPCG(7, 8))
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%q", strings.TrimSpace(randomWord(rng)+randomWord(rng)))
	}
	return `{"type":"array","items":{"enum":[` + strings.Join(names, ",") + `]}}`
}

// toolSet returns a choice of calls with a name and parameters each, as agents send them.
func toolSet(bytes int) string {
	rng := rand.New(rand.NewPCG(5, 6))
	type object = map[string]any
	var tools []string
	for size := 0; size < bytes; {
		props := object{}
		for range 6 {
			kind := []object{{"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"},
				{"type": "array", "items": object{"type": "string"}},
				{"enum": []string{"asc", "desc", "none"}}}[rng.IntN(5)]
			kind["description"] = "What is meant by this parameter, in one sentence that models read."
			props[randomWord(rng)] = kind
		}
		arguments, err := json.Marshal(object{"type": "object", "properties": props, "additionalProperties": false})
		if err != nil {
			panic(err) // maps and strings always marshal
		}
		tools = append(tools, fmt.Sprintf(`{"type":"object","required":["name","arguments"],"additionalProperties":false,`+
			`"properties":{"name":{"const":"tool_%d"},"arguments":%s}}`, len(tools), arguments))
		size += len(tools[len(tools)-1])
	}
	return `{"anyOf":[` + strings.Join(tools, ",") + `]}`
}
