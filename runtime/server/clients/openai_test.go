package clients

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
)

const key, otherKey = "sk-test", "sk-other"

// connect returns a client of the server at SANDWICH_URL (key in SANDWICH_API_KEY), or of one that
// it starts with additional arguments of serve.
func connect(t *testing.T, args ...string) openai.Client {
	t.Helper()
	if url := os.Getenv("SANDWICH_URL"); url != "" {
		return client(url, os.Getenv("SANDWICH_API_KEY"))
	}
	return client(start(t, args...), key)
}

// start starts a server from the binary SANDWICH_BIN, by default bin/sandwich of this repository,
// with the embedded model, and returns its address. The server accepts the keys key and otherKey.
func start(t *testing.T, args ...string) string {
	t.Helper()
	bin := os.Getenv("SANDWICH_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "..", "bin", "sandwich")
	}
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("no server to talk to: set SANDWICH_URL or run make build (%v)", err)
	}
	addr := freeAddr(t)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(key+"\n"+otherKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"serve", "--listen", addr, "--api-key-file", keys}, args...)
	if os.Getenv("MODELS") != "" {
		args = append(args, "--models", catalog(t, bin))
	}
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := <-exited; err != nil {
			t.Errorf("the server did not end cleanly: %v", err)
		}
	})
	for range 600 {
		if resp, err := http.Get("http://" + addr + "/health"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return "http://" + addr
			}
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the server ended: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("the server does not answer /health")
	return ""
}

func client(url, key string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func chat(model, text string, n int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:               model,
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
		MaxCompletionTokens: openai.Int(n),
		Temperature:         openai.Float(0),
	}
}

// streamed runs a streamed chat and returns the accumulated answer.
func streamed(t *testing.T, c openai.Client, p openai.ChatCompletionNewParams) openai.ChatCompletion {
	t.Helper()
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	defer stream.Close()
	acc, usages := openai.ChatCompletionAccumulator{}, 0
	for stream.Next() {
		chunk := stream.Current()
		if chunk.Usage.TotalTokens > 0 {
			usages++
		}
		if !acc.AddChunk(chunk) {
			t.Fatalf("the client cannot add %s", chunk.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if usages != 1 {
		t.Fatalf("%d chunks had usage, want 1", usages)
	}
	return acc.ChatCompletion
}

func TestOpenAIClient(t *testing.T) {
	c := connect(t)
	models, err := c.Models.List(t.Context())
	if err != nil || len(models.Data) == 0 {
		t.Fatalf("models: %v %v", models, err)
	}
	model := models.Data[0].ID
	t.Logf("model %s", model)

	var answer string
	t.Run("stream a chat with usage", func(t *testing.T) {
		got := streamed(t, c, chat(model, "Tell me a story about a fox.", 24))
		u := got.Usage
		t.Logf("%q, usage %d + %d", got.Choices[0].Message.Content, u.PromptTokens, u.CompletionTokens)
		if got.Choices[0].Message.Content == "" || got.Choices[0].FinishReason == "" {
			t.Fatalf("answer %+v", got.Choices[0])
		}
		if u.PromptTokens < 1 || u.CompletionTokens < 1 || u.CompletionTokens > 24 || u.TotalTokens != u.PromptTokens+
			u.CompletionTokens {
			t.Fatalf("usage %+v", u)
		}
		answer = got.Choices[0].Message.Content
	})
	t.Run("the same without a stream", func(t *testing.T) {
		got, err := c.Chat.Completions.New(t.Context(), chat(model, "Tell me a story about a fox.", 24))
		if err != nil {
			t.Fatal(err)
		}
		if got.Choices[0].Message.Content != answer || got.Usage.TotalTokens == 0 {
			t.Fatalf("%q with usage %+v, streamed %q", got.Choices[0].Message.Content, got.Usage, answer)
		}
	})
	t.Run("log probabilities", func(t *testing.T) {
		p := chat(model, "Hello", 3)
		p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(2)
		got := streamed(t, c, p)
		lp := got.Choices[0].Logprobs.Content
		if len(lp) == 0 || lp[0].Logprob > 0 || len(lp[0].TopLogprobs) != 2 {
			t.Fatalf("logprobs %+v", lp)
		}
	})
	t.Run("completion", func(t *testing.T) {
		got, err := c.Completions.New(t.Context(), openai.CompletionNewParams{
			Model: openai.CompletionNewParamsModel(model), MaxTokens: openai.Int(8), Temperature: openai.Float(0),
			Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once upon a time")},
		})
		if err != nil || got.Choices[0].Text == "" || got.Usage.CompletionTokens < 1 {
			t.Fatalf("%+v %v", got, err)
		}
	})
	t.Run("a prompt that is too long", func(t *testing.T) {
		_, err := c.Chat.Completions.New(t.Context(), chat(model, strings.Repeat("word ", 300_000), 8))
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != http.StatusBadRequest || e.Code != "context_length_exceeded" {
			t.Fatalf("error %v", err)
		}
		t.Log(e.Message)
	})
	t.Run("hang up in a stream", func(t *testing.T) {
		ctx, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		stream := c.Chat.Completions.NewStreaming(ctx, chat(model, "Tell me everything.", 200))
		defer stream.Close()
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
		hangUp()
		for stream.Next() {
		}
		streamed(t, c, chat(model, "Still there?", 4))
	})
}
