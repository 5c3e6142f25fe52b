package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/models/modelserver"
)

// quickStart is the section of README.md with the first steps.
func quickStart(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "## Quick start\n")
	section, _, end := strings.Cut(section, "\n## ")
	if !ok || !end {
		t.Fatal("README.md has no quick start")
	}
	return section
}

// block returns the code block of a section that follows a text.
func block(t *testing.T, section, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(section, after)
	_, rest, open := strings.Cut(rest, "```\n")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !open || !closed {
		t.Fatalf("README.md has no code block after %q", after)
	}
	return text
}

var (
	folders = regexp.MustCompile(`in /\S+`)
	sizes   = regexp.MustCompile(`[0-9][0-9.]* [KMG]iB`)
	ports   = regexp.MustCompile(`:[0-9]+;`)
)

// masked replaces the parts of a text that differ between machines.
func masked(text string) string {
	text = folders.ReplaceAllString(text, "in FOLDER")
	return ports.ReplaceAllString(sizes.ReplaceAllString(text, "SIZE"), ":PORT;")
}

// hasLines checks that an output has each line of a block of README.md.
func hasLines(t *testing.T, output, block string) {
	t.Helper()
	for line := range strings.Lines(masked(block)) {
		if !strings.Contains("\n"+masked(output), "\n"+line) {
			t.Errorf("README.md shows the line %q; the output is\n%s", line, output)
		}
	}
}

// TestQuickStart runs the quick start of README.md against a hub on a loopback address, with a
// small model in place of the real one.
func TestQuickStart(t *testing.T) {
	section := quickStart(t)
	var commands [][]string
	for line := range strings.Lines(block(t, section, "")) {
		if command, ok := strings.CutPrefix(line, "./bin/sandwich "); ok {
			command, _, _ = strings.Cut(command, " #")
			commands = append(commands, strings.Fields(command))
		}
	}
	if len(commands) != 3 || commands[0][0] != "pull" || commands[1][0] != "tune" || commands[2][0] != "serve" {
		t.Fatalf("the commands are %v; want pull, tune and serve", commands)
	}
	dir := t.TempDir()
	hub := modelserver.Start()
	defer hub.Close()
	for name, value := range map[string]string{"HOME": dir, "XDG_DATA_HOME": filepath.Join(dir, "data"),
		"HF_ENDPOINT": hub.URL, "HF_TOKEN": "", "HF_HOME": dir, "HF_HUB_CACHE": "", "OLLAMA_MODELS": dir,
		"SANDWICH_MODELS": ""} {
		t.Setenv(name, value)
	}
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "sandwich", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("sandwich %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	publishSmall(t, hub, commands[0][1], run)
	hasLines(t, run(commands[0]...), block(t, section, "`pull` prints"))
	run(append(commands[1], "--budget", "1s", "--seq-max", "8", "--batch-max", "1")...)
	plans, err := filepath.Glob(filepath.Join(dir, "data", "sandwich", "*.plan"))
	if err != nil || len(plans) != 1 {
		t.Errorf("the plans are %v, %v; want one", plans, err)
	}
	cmd := exec.Command("sandwich", append(commands[2], "--listen", "127.0.0.1:0", "--ctx", "4096")...)
	cmd.Env = os.Environ()
	s := launchServer(t, cmd)
	hasLines(t, s.stdout.String(), block(t, section, "`serve` prints"))
	ask(t, s, block(t, section, "Ask the server"))
	s.stop()
}

// publishSmall publishes a small model under a reference such as hf:OWNER/REPO:TYPE.
func publishSmall(t *testing.T, hub *modelserver.Server, reference string, run func(args ...string) string) {
	t.Helper()
	repo, kind, ok := strings.Cut(strings.TrimPrefix(reference, "hf:"), ":")
	if !ok {
		t.Fatalf("%s names no weight type", reference)
	}
	name := strings.TrimSuffix(filepath.Base(repo), "-GGUF") + "-" + kind + ".gguf"
	path := filepath.Join(t.TempDir(), name)
	run("model", "synth", "--preset", "qwen3-tiny", "--type", "q8_0", "-o", path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hub.AddRepository(repo, map[string][]byte{name: data, "README.md": []byte("# A model\n")})
}

// ask sends the request of a curl command, for a few tokens only.
func ask(t *testing.T, s *served, curl string) {
	t.Helper()
	m := regexp.MustCompile(`(?s)http://127\.0\.0\.1:8080(/\S+).*-d '(.*)'`).FindStringSubmatch(curl)
	var body map[string]any
	if m == nil || json.Unmarshal([]byte(m[2]), &body) != nil {
		t.Fatalf("the request of %q cannot be read", curl)
	}
	body["max_tokens"] = 4
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if code, answer, _ := s.do("POST", m[1], string(text), ""); code != 200 || !strings.Contains(answer,
		"data: [DONE]") {
		t.Errorf("%d %s", code, answer)
	}
}
