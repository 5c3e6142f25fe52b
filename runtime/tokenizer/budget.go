package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/builtins"
	controls "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// gonja runs a template to its end, however long that takes. So the tree is laced with checkpoints when it is parsed: at each
// tag, each round of a loop and each call of a macro. Between two of them lies one expression, which maxTagTokens bounds.

// Limits of one rendering. What a template writes beside the messages is a few kilobytes in practice.
const (
	renderTime   = 2 * time.Second
	renderSteps  = 5_000_000
	renderDepth  = 64        // macros inside macros, lists inside lists
	renderSpare  = 256 << 10 // bytes of text, of one variable, beside four times the messages
	maxRangeSize = 10_000
)

// budget is what one rendering may still spend. It travels in the template's context under a name that no template can spell.
type budget struct {
	deadline time.Time
	steps    int
	depth    int
	bytes    int    // longest text or variable
	raised   string // argument of raise_exception
	spent    error  // set once something ran out
}

const budgetKey = " budget"

func newBudget(input int) *budget {
	return &budget{deadline: time.Now().Add(renderTime), steps: renderSteps, bytes: renderSpare + 4*input}
}

func (b *budget) fail(what string) error {
	if b.spent == nil {
		b.spent = fmt.Errorf("the model's chat template was stopped: %s", what)
	}
	return b.spent
}

// step is passed at each checkpoint.
func (b *budget) step() error {
	if b.spent != nil {
		return b.spent
	}
	if b.steps--; b.steps < 0 {
		return b.fail(fmt.Sprintf("it took more than %d steps", renderSteps))
	}
	if b.steps%64 == 0 && time.Now().After(b.deadline) {
		return b.fail(fmt.Sprintf("it took more than %v", renderTime))
	}
	return nil
}

func (b *budget) tooLong() error {
	return b.fail(fmt.Sprintf("it made more than %d bytes of text", b.bytes))
}

// budgetWriter is where the rendered text goes.
type budgetWriter struct {
	budget *budget
	text   strings.Builder
}

func (w *budgetWriter) Write(p []byte) (int, error) { return w.WriteString(string(p)) }

func (w *budgetWriter) WriteString(s string) (int, error) {
	if err := w.budget.step(); err != nil {
		return 0, err
	}
	if w.text.Len()+len(s) > w.budget.bytes {
		return 0, w.budget.tooLong()
	}
	return w.text.WriteString(s)
}

// budgetOf finds the budget of the rendering that r belongs to.
func budgetOf(ctx *exec.Context) *budget {
	if v, ok := ctx.Get(budgetKey); ok {
		if b, ok := v.(*budget); ok {
			return b
		}
	}
	return &budget{spent: errors.New("the model's chat template has no budget")}
}

// checkpoint is a node that costs a step, and moves the depth by enter.
type checkpoint struct {
	at    *tokens.Token
	enter int
}

func (c *checkpoint) Position() *tokens.Token { return c.at }
func (c *checkpoint) String() string          { return "checkpoint" }

func (c *checkpoint) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	b := budgetOf(r.Environment.Context)
	if b.depth += c.enter; b.depth > renderDepth {
		return b.fail(fmt.Sprintf("its macros nest more than %d deep", renderDepth))
	}
	// Macros and block assignments write into buffers of their own, which only a checkpoint inside them can see.
	if buffer, ok := r.Output.(interface{ Len() int }); ok && buffer.Len() > b.bytes {
		return b.tooLong()
	}
	return b.step()
}

func checkpointNode(at *tokens.Token, enter int) nodes.Node {
	return &nodes.ControlStructureBlock{Location: at, Name: "checkpoint", ControlStructure: &checkpoint{at, enter}}
}

// guarded is a tag with a checkpoint before it and, for assignments, a look at what was assigned.
type guarded struct {
	exec.ControlStructure
	assigned string
}

func (g *guarded) Execute(r *exec.Renderer, block *nodes.ControlStructureBlock) error {
	b := budgetOf(r.Environment.Context)
	if err := b.step(); err != nil {
		return err
	}
	if err := g.ControlStructure.Execute(r, block); err != nil {
		return err
	}
	if g.assigned == "" {
		return nil
	}
	value, _ := r.Environment.Context.Get(g.assigned)
	if left := measure(reflect.ValueOf(value), b.bytes, 0); left < 0 {
		return b.fail(fmt.Sprintf("its variable %q grew over %d bytes or %d levels", g.assigned, b.bytes, renderDepth))
	}
	return nil
}

// measure subtracts the size of a value from left; negative when it is too large, too deep or contains itself.
func measure(v reflect.Value, left, depth int) int {
	if depth > renderDepth {
		return -1
	}
	left -= 8
	if left < 0 || !v.IsValid() {
		return left
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if wrapped, ok := v.Interface().(*exec.Value); ok && wrapped != nil {
			return measure(wrapped.Val, left, depth+1)
		}
		if dict, ok := v.Interface().(*exec.Dict); ok && dict != nil {
			for _, pair := range dict.Pairs {
				left = measure(reflect.ValueOf(pair.Value), measure(reflect.ValueOf(pair.Key), left, depth+1), depth+1)
			}
			return left
		}
		if v.Kind() == reflect.Interface {
			return measure(v.Elem(), left, depth)
		}
	case reflect.String:
		return left - v.Len()
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && left >= 0; i++ {
			left = measure(v.Index(i), left, depth+1)
		}
	case reflect.Map:
		for entries := v.MapRange(); left >= 0 && entries.Next(); {
			left = measure(entries.Value(), measure(entries.Key(), left, depth+1), depth+1)
		}
	}
	return left
}

// guardedTags are the tags that templates may use: no inclusion, no inheritance, no recursion but by macros.
func guardedTags() *exec.ControlStructureSet {
	tags := map[string]parser.ControlStructureParser{"generation": parseGeneration}
	for _, name := range []string{"for", "if", "set", "macro", "raw", "break", "continue", "filter", "with"} {
		parse, ok := builtins.ControlStructures.Get(name)
		if ok {
			tags[name] = guardTag(name, parse)
		}
	}
	return exec.NewControlStructureSet(tags)
}

func guardTag(name string, parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p *parser.Parser, args *parser.Parser) (nodes.ControlStructure, error) {
		assigned := ""
		if first := args.Current(); name == "set" && first != nil {
			assigned = first.Val
		}
		tag, err := parse(p, args)
		if err != nil {
			return nil, err
		}
		switch tag := tag.(type) {
		case *controls.ForControlStructure:
			if tag.Recursive {
				return nil, errors.New("recursive loops are not supported")
			}
			lace(tag.BodyWrapper, 0)
		case *controls.MacroControlStructure:
			lace(tag.Wrapper, 1)
		}
		executable, ok := tag.(exec.ControlStructure)
		if !ok {
			return tag, nil
		}
		return &guarded{executable, assigned}, nil
	}
}

// lace puts checkpoints at the start and, where depth is counted, at the end of a body.
func lace(body *nodes.Wrapper, enter int) {
	laced := append([]nodes.Node{checkpointNode(body.Location, enter)}, body.Nodes...)
	if enter != 0 {
		laced = append(laced, checkpointNode(body.Location, -enter))
	}
	body.Nodes = laced
}

// generation is a tag of Hugging Face's that marks what the assistant wrote; it renders its body.
type generation struct{ body *nodes.Wrapper }

func (g *generation) Position() *tokens.Token { return g.body.Position() }
func (g *generation) String() string          { return "generation" }
func (g *generation) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	return r.ExecuteIfWrapper(g.body)
}

func parseGeneration(p *parser.Parser, _ *parser.Parser) (nodes.ControlStructure, error) {
	body, _, err := p.WrapUntil("endgeneration")
	if err != nil {
		return nil, err
	}
	return &generation{body}, nil
}

var _ interface{ Len() int } = (*bytes.Buffer)(nil) // what block assignments write into
