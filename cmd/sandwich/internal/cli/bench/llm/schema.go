package llm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/session"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/llm"
)

// schemaFlags holds the flags of bench llm schema.
type schemaFlags struct {
	clientFlags
	file string // with the JSON Schema
}

func newSchema() *cobra.Command {
	var f schemaFlags
	c := &cobra.Command{
		Use:   "schema FILE",
		Short: "Measure what answers under a JSON Schema cost, with concurrent requests",
		Long: `Measure generation under the JSON Schema of a file with concurrent requests in this process, interleaved with as many
plain answers. The share is the throughput under the schema divided by the plain one.`,
		Example: "  sandwich bench llm schema answer.json --model llama.gguf --clients 8 -n 128",
		Args:    flags.ExactArgs(1, "a file with a JSON Schema"),
	}
	f.add(c)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		f.file = args[0]
		return schemaReport.After(c, *format)(f.runSchema(c.Context()))
	}
	return c
}

// runSchema measures each number of generated tokens. It interleaves plain answers with answers
// under the schema.
func (f *schemaFlags) runSchema(ctx context.Context) ([]measure.ConstrainedRow, error) {
	schema, err := os.ReadFile(f.file)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("the JSON Schema: %w", err))
	}
	if _, err := measure.GrammarOfSchema(string(schema)).Compile(); err != nil {
		return nil, exit.Usage(fmt.Errorf("the JSON Schema %s: %w", show.Clip(f.file, 60), err))
	}
	s, err := f.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var rows []measure.ConstrainedRow
	for _, n := range f.gen {
		if n == 0 {
			continue
		}
		row, err := f.measureSchema(ctx, s, string(schema), n)
		if err != nil {
			return nil, err
		}
		row.Schema = filepath.Base(f.file)
		rows = append(rows, *row)
	}
	return rows, nil
}

func (f *schemaFlags) measureSchema(ctx context.Context, s *session.Session, schema string, n int,
) (*measure.ConstrainedRow, error) {
	e, err := f.engine(ctx, s, n)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	step, done := show.StepBar("bench llm schema", f.reps+1)
	defer done()
	row, err := measure.Constrained(ctx, measure.ConstrainedOptions{Clients: f.clients, Tokens: n,
		Vocab: s.Shape.Vocab, Reps: f.reps, Schema: schema, Generate: s.Generator(e, f.clients).Generate, Step: step})
	if err != nil {
		return nil, err
	}
	row.Model, row.Plan, row.PUs, row.CPU = s.Name, llm.PlanName(s.Plan), s.Plan.Decode.PUs.String(),
		s.Profile.Host.CPUModel
	return row, nil
}

var schemaReport = show.Report[measure.ConstrainedRow]{
	Title: func(r *measure.ConstrainedRow) string { return r.Model + " on " + r.CPU },
	Columns: []string{"test", "clients", "plan", "schema", "answers", "plain, tokens/s", "constrained, tokens/s",
		"share",
		"goal: at least"},
	Numbers: []int{1, 4, 5, 6, 7},
	Cells: func(r *measure.ConstrainedRow) []string {
		verdict := "met"
		if r.Share < r.Goal {
			verdict = "missed"
		}
		return []string{r.Test, fmt.Sprint(r.Clients), r.Plan, r.Schema, fmt.Sprint(r.Answers),
			fmt.Sprintf("%.1f", r.Plain), fmt.Sprintf("%.1f", r.Constrained), fmt.Sprintf("%.3f", r.Share),
			fmt.Sprintf("%.2f (%s)", r.Goal, verdict)}
	},
	Header: "test,model,clients,plan,schema,answers,plain_tokens_per_second,constrained_tokens_per_second,share,goal",
	Line: func(r *measure.ConstrainedRow) string {
		return fmt.Sprintf("%s,%s,%d,%s,%s,%d,%.2f,%.2f,%.4f,%.2f", r.Test, show.CSVCell(r.Model), r.Clients,
			show.CSVCell(r.Plan), show.CSVCell(r.Schema), r.Answers, r.Plain, r.Constrained, r.Share, r.Goal)
	},
}
