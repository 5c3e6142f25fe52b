package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
)

// embedFlags holds the flags of embed.
type embedFlags struct {
	session    modelflags.Flags
	file       string
	tokens     []string
	raw        bool
	dimensions int
	truncate   bool
	context    int
}

// NewEmbed returns the command `sandwich embed`.
func NewEmbed() *cobra.Command {
	f := embedFlags{session: modelflags.Flags{Wants: modelflags.ForVector}}
	c := &cobra.Command{
		Use:   "embed TEXT...",
		Short: "Print the embeddings of texts, or their scores by a rerank model",
		Long: `Print the embeddings of texts, or the scores of a rerank model. The texts are the arguments, the lines of a file (--file;
- reads standard input), or token ids (--tokens, to which nothing is added; may be repeated).

Embeddings have length 1 unless --raw is given; scores are printed as the model computes them. --format f32 writes the
vectors one after the other as little-endian float32. With --compute f32 --kv f32 the arithmetic is exact.`,
		Example: `  sandwich embed --model bge-small.gguf "the rain in Spain" "stays mainly in the plain"
  sandwich embed --model nomic-embed.gguf --file texts.txt --dimensions 256 --format f32 >vectors.f32
  sandwich embed --model bert.gguf --tokens 101,7592,102 --raw --compute f32 --kv f32`,
		Args: cobra.ArbitraryArgs,
	}
	f.session.Add(c)
	fs := c.Flags()
	fs.StringVar(&f.file, "file", "", "file with one text per line; - reads standard input")
	fs.StringArrayVar(&f.tokens, "tokens", nil, "token ids of a text, such as 1,2,3; may be repeated")
	fs.BoolVar(&f.raw, "raw", false, "do not normalize embeddings to length 1")
	fs.IntVar(&f.dimensions, "dimensions", 0, "number of leading elements of an embedding to print (default: all)")
	fs.BoolVar(&f.truncate, "truncate", false, "shorten texts that exceed the context, instead of refusing them")
	fs.IntVar(&f.context, "ctx", 0, "maximum number of tokens of a text (default: the training context of the "+
		"model, at most 8192)")
	format := flags.Format(c, "text", "json", "f32")
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.context < 0 || f.context > modelflags.MaxContext {
			return exit.Usage(fmt.Errorf("--ctx %d is out of range; give a number of tokens up to %d", f.context,
				modelflags.MaxContext))
		}
		if fs.Changed("dimensions") && f.dimensions < 1 {
			return exit.Usage(fmt.Errorf("--dimensions %d is too small; give a number of at least 1", f.dimensions))
		}
		return f.run(c.Context(), c.InOrStdin(), c.OutOrStdout(), args, *format)
	}
	return c
}

// embedded is the stable JSON of embed.
type embedded struct {
	Model      string         `json:"model"`
	Pooling    string         `json:"pooling"`
	Dimensions int            `json:"dimensions"`
	Normalized bool           `json:"normalized"`
	Embeddings []embeddedText `json:"embeddings"`
	Timings    struct {
		Load    float64 `json:"load_s"`
		Compute float64 `json:"compute_s"`
		Tokens  int     `json:"tokens"`
		Rate    float64 `json:"tokens_per_second"`
	} `json:"timings"`
}

type embeddedText struct {
	Index     int       `json:"index"`
	Tokens    int       `json:"tokens"`
	Embedding []float32 `json:"embedding"`
}

func (f *embedFlags) run(ctx context.Context, in io.Reader, out io.Writer, texts []string, format string) error {
	began := time.Now()
	texts, err := f.read(in, texts)
	if err != nil {
		return exit.Usage(err)
	}
	s, err := f.session.Open()
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := f.embed(ctx, s, texts, began)
	if err != nil {
		return err
	}
	return a.print(out, format)
}

// read returns the texts that the arguments or --file specify. It returns none for --tokens.
func (f *embedFlags) read(in io.Reader, texts []string) ([]string, error) {
	given := 0
	for _, yes := range []bool{len(texts) > 0, f.file != "", len(f.tokens) > 0} {
		if yes {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errors.New("give exactly one of: texts as arguments, --file, --tokens")
	case f.file == "":
		return texts, nil
	case f.file == "-":
		return readLines(in, "standard input", maxPromptBytes)
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readLines(file, f.file, maxPromptBytes)
}

// readLines returns the lines of a file without their ends. It fails if there is no line, or more
// than limit bytes or modelflags.MaxTexts lines.
func readLines(in io.Reader, name string, limit int) (lines []string, err error) {
	r := bufio.NewReader(io.LimitReader(in, int64(limit)+1))
	for size := 0; err != io.EOF; {
		var line string
		if line, err = r.ReadString('\n'); err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if line != "" {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
		if size += len(line); size > limit {
			return nil, fmt.Errorf("%s has more than %d MiB; split it into several files", name, limit>>20)
		}
		if len(lines) > modelflags.MaxTexts {
			return nil, fmt.Errorf("%s has more than %d lines; split it into several files", name, modelflags.MaxTexts)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s is empty; write one text per line", name)
	}
	return lines, nil
}

func (a *embedded) print(out io.Writer, format string) error {
	if format == "f32" {
		out = show.Raw(out)
	}
	w := bufio.NewWriter(out)
	switch format {
	case "json":
		if err := json.NewEncoder(w).Encode(a); err != nil { // on one line, since the lists are long
			return err
		}
	case "f32":
		for i := range a.Embeddings {
			_, _ = w.Write(floatBytes(a.Embeddings[i].Embedding)) // Flush returns the error
		}
	default:
		for i := range a.Embeddings {
			for j, v := range a.Embeddings[i].Embedding {
				if j > 0 {
					_ = w.WriteByte(' ')
				}
				fmt.Fprintf(w, "%g", v)
			}
			fmt.Fprintln(w)
		}
	}
	return w.Flush()
}
