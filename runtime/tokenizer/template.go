package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// Chat templates are Jinja programs that arrive inside model files, so they are run as what a stranger wrote: without files,
// without the operators and filters that make much out of little, and on a budget (budget.go).

// Limits of a template's source. The largest in use have 17 KB and sixty tokens in a tag.
const (
	maxTemplateBytes = 128 << 10
	maxTagTokens     = 512 // bounds the depth of an expression, and what one expression can build
)

// chatTemplate is a compiled template, safe for concurrent use.
type chatTemplate struct{ root *exec.Template }

// templateName is what the one template is called inside gonja.
const templateName = "chat template"

func compileTemplate(source string) (compiled *chatTemplate, err error) {
	defer catch(&err)
	if len(source) > maxTemplateBytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(source), maxTemplateBytes)
	}
	cfg := config.New()
	cfg.TrimBlocks, cfg.LeftStripBlocks = true, true // as Hugging Face renders them
	if err := checkTags(source, cfg); err != nil {
		return nil, err
	}
	source = rewriteConditionals(source)
	root, err := exec.NewTemplate(templateName, cfg, onlySource(source), templateEnvironment())
	if err != nil {
		return nil, errors.New(innermost(err))
	}
	return &chatTemplate{root}, nil
}

// checkTags refuses what no budget can bound: tags of very many tokens, and repetition by * and **.
func checkTags(source string, cfg *config.Config) error {
	stream := tokens.LexAll(source, cfg)
	inTag, macro := 0, false
	for token := stream.Current(); token != nil && !stream.End(); token = stream.Next() {
		switch token.Type {
		case tokens.VariableBegin, tokens.BlockBegin:
			inTag, macro = 0, false
		case tokens.Name:
			macro = macro || inTag == 1 && token.Val == "macro"
		case tokens.Multiply, tokens.Power:
			if !macro { // there it marks the rest of the arguments
				return fmt.Errorf("line %d uses the operator %s, which is not supported", token.Line, token.Val)
			}
		}
		if inTag++; inTag > maxTagTokens && token.Type != tokens.Data {
			return fmt.Errorf("line %d has a tag of more than %d tokens", token.Line, maxTagTokens)
		}
	}
	return nil
}

// render runs the template over a conversation.
func (c *chatTemplate) render(t *Tokenizer, msgs []Message, addGenerationPrompt bool) (text string, err error) {
	input := 0
	turns := make(list, len(msgs))
	for i, m := range msgs {
		turns[i] = map[string]any{"role": m.Role, "content": m.Content}
		input += len(m.Role) + len(m.Content)
	}
	b := newBudget(input)
	data := exec.NewContext(map[string]any{
		budgetKey:               b,
		"messages":              turns,
		"add_generation_prompt": addGenerationPrompt,
		"bos_token":             string(t.Piece(t.bos)),
		"eos_token":             string(t.Piece(t.eos)),
		"unk_token":             string(t.Piece(t.unknown)),
		"raise_exception": func(args *exec.VarArgs) (*exec.Value, error) {
			b.raised = args.First().String()
			return nil, errors.New(b.raised)
		},
	})
	defer catch(&err)
	out := &budgetWriter{budget: b}
	err = c.root.Execute(out, data)
	switch {
	case b.spent != nil:
		return "", b.spent
	case b.raised != "":
		return "", fmt.Errorf("%w: %s", ErrMessages, b.raised)
	case err != nil:
		return "", fmt.Errorf("the model's chat template failed: %s", innermost(err))
	}
	return out.text.String(), nil
}

// catch turns a panic of the template engine (division by zero, a wrong type) into an error.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the model's chat template failed: %v", p)
	}
}

// innermost is the message of the error that err wraps, without the template's own text that gonja repeats at each level.
func innermost(err error) string {
	for {
		var next error
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			next = e.Unwrap()
		case interface{ Cause() error }:
			next = e.Cause()
		}
		if next == nil {
			break
		}
		err = next
	}
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// onlySource is a loader that knows the one template and nothing else: no files.
type onlySource string

var errNoFiles = errors.New("chat templates cannot load other templates")

func (s onlySource) Read(path string) (io.Reader, error) {
	if path != templateName {
		return nil, errNoFiles
	}
	return bytes.NewReader([]byte(s)), nil
}

func (s onlySource) Resolve(path string) (string, error) {
	if path != templateName {
		return "", errNoFiles
	}
	return path, nil
}

func (s onlySource) Inherit(string) (loaders.Loader, error) { return s, nil }
