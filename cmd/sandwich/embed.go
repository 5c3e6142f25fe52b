package main

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

	"sandwich/cmd/sandwich/internal/show"
)

// embedFlags holds the flags of embed in addition to those of the session.
type embedFlags struct {
	session    sessionFlags
	file       string
	tokens     []string
	raw        bool
	dimensions int
	truncate   bool
	context    int
}

func newEmbed() *cobra.Command {
	f := embedFlags{session: sessionFlags{wants: forVector}}
	c := &cobra.Command{
		Use:   "embed TEXT...",
		Short: "Print the embeddings of texts, or the scores that a rerank model gives them",
		Long: `Print what an embedding or a rerank model makes of texts: those named, the lines of a file (--file, - for standard
input), or token ids (--tokens, complete: nothing is added to them; may be given several times).

Embeddings have length 1 unless --raw is given; scores are as the model has them. --format f32 writes them one behind
the other as little-endian float32. With --compute f32 --kv f32 the arithmetic is exact.`,
		Example: `  sandwich embed --model bge-small.gguf "the rain in Spain" "stays mainly in the plain"
  sandwich embed --model nomic-embed.gguf --file texts.txt --dimensions 256 --format f32 >vectors.f32
  sandwich embed --model bert.gguf --tokens 101,7592,102 --raw --compute f32 --kv f32`,
		Args: cobra.ArbitraryArgs,
	}
	f.session.add(c)
	fs := c.Flags()
	fs.StringVar(&f.file, "file", "", "file with one text a line; - reads standard input")
	fs.StringArrayVar(&f.tokens, "tokens", nil, "token ids of a text, such as 1,2,3; may be given several times")
	fs.BoolVar(&f.raw, "raw", false, "embeddings as the model makes them, of any length")
	fs.IntVar(&f.dimensions, "dimensions", 0, "only so many of the first numbers of an embedding (default: all)")
	fs.BoolVar(&f.truncate, "truncate", false, "cut texts that are too long, instead of refusing them")
	fs.IntVar(&f.context, "ctx", 0, "most tokens of a text (default: what the model was trained for, 8192 at most)")
	format := formatFlag(c, "text", "json", "f32")
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.context < 0 || f.context > maxContext {
			return usageError(fmt.Errorf("--ctx %d: give a number of tokens up to %d", f.context, maxContext))
		}
		if fs.Changed("dimensions") && f.dimensions < 1 {
			return usageError(fmt.Errorf("--dimensions %d: give a number of at least 1", f.dimensions))
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
		return usageError(err)
	}
	s, err := f.session.open()
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

// maxTexts bounds how many texts are embedded in one go.
const maxTexts = 1 << 20

// read lists the texts that were asked for.
func (f *embedFlags) read(in io.Reader, texts []string) ([]string, error) {
	given := 0
	for _, yes := range []bool{len(texts) > 0, f.file != "", len(f.tokens) > 0} {
		if yes {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errors.New("give texts, a file of them with --file, or token ids with --tokens")
	case f.file == "":
		return texts, nil
	case f.file != "-":
		file, err := os.Open(f.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	r := bufio.NewReader(io.LimitReader(in, maxPromptBytes))
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			texts = append(texts, strings.TrimRight(line, "\r\n"))
		}
		switch {
		case len(texts) > maxTexts:
			return nil, fmt.Errorf("%s has more than %d lines: embed them in several goes", f.file, maxTexts)
		case err == io.EOF && len(texts) == 0:
			return nil, fmt.Errorf("%s holds no text", f.file)
		case err == io.EOF:
			return texts, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", f.file, err)
		}
	}
}

func (a *embedded) print(out io.Writer, format string) error {
	if format == "f32" {
		out = show.Raw(out)
	}
	w := bufio.NewWriter(out)
	switch format {
	case "json":
		if err := json.NewEncoder(w).Encode(a); err != nil { // on one line: the lists are long
			return err
		}
	case "f32":
		for i := range a.Embeddings {
			_, _ = w.Write(floatBytes(a.Embeddings[i].Embedding)) // Flush tells
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
