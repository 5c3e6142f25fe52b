package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/refdata"
)

var update = flag.Bool("update", false, "write testdata/chat_ids.golden")

const goldenFile = "testdata/chat_ids.golden"

// TestChatIDsGolden checks that ordinary conversations keep their token ids: for each vocabulary,
// the hash of the ids of all conversations by all templates and by the vocabulary's own format.
// Reference data that the golden file does not know are skipped.
func TestChatIDsGolden(t *testing.T) {
	defer func(clock func() time.Time) { now = clock }(now)
	now = func() time.Time { return time.Date(2025, 3, 14, 15, 9, 26, 0, time.UTC) }
	want := map[string]string{}
	if raw, err := os.ReadFile(goldenFile); err == nil {
		for line := range strings.Lines(string(raw)) {
			input, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
			want[input] = sum
		}
	}
	got := map[string]string{}
	templates := publishedTemplates(t)
	for _, path := range vocabularies(t) {
		input := inputSum(load(t, path), templates)
		if want[input] == "" && !*update {
			t.Logf("%s: not in %s", filepath.Base(path), goldenFile)
			continue
		}
		got[input] = chatSum(t, path, templates)
		if !*update && got[input] != want[input] {
			t.Errorf("%s: the ids of ordinary conversations hash to %s, want %s", filepath.Base(path), got[input],
				want[input])
		}
	}
	if len(got) == 0 {
		t.Skip("none of the reference data is in " + goldenFile + ": set SANDWICH_TESTDATA to the folder that holds it")
	}
	if *update {
		var out bytes.Buffer
		for _, input := range slices.Sorted(maps.Keys(got)) {
			fmt.Fprintf(&out, "%s %s\n", input, got[input])
		}
		if err := os.WriteFile(goldenFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// inputSum hashes what the ids follow from: the vocabulary, its format, and the templates with
// their conversations.
func inputSum(tok *Tokenizer, templates []publishedTemplate) string {
	h := sha256.New()
	var all []byte
	for id := range tok.Vocab() {
		all = append(all, tok.Piece(int32(id))...)
	}
	fmt.Fprintf(h, "%x %v %s\n", all, tok.addBOS, tok.ChatFormat())
	for _, p := range templates {
		fmt.Fprintf(h, "%s\n", p.source)
		for _, m := range slices.Concat(p.talks...) {
			fmt.Fprintf(h, "%q %q %q\n", m.Role, m.Content, m.Reasoning)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// vocabularies returns the paths of reference files, one for each distinct vocabulary.
func vocabularies(t *testing.T) (paths []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, folder := range []string{"tokenizer/vocab", "parity2/tokenizer", "parity/models", "parity2/models", "demo"} {
		for _, path := range refdata.Find(t, folder+"/*.gguf") {
			if sum := inputSum(load(t, path), nil); !seen[sum] {
				seen[sum] = true
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// publishedTemplate is a template of a published model with its conversations.
type publishedTemplate struct {
	name, source string
	talks        [][]api.Message
}

// publishedTemplates reads the published templates, or skips.
func publishedTemplates(t *testing.T) (out []publishedTemplate) {
	t.Helper()
	files := refdata.Find(t, "parity2/templates/*.json")
	for _, file := range files {
		var doc rendered
		readJSON(t, file, &doc)
		source, err := os.ReadFile(filepath.Join(filepath.Dir(file), doc.Template))
		if err != nil {
			t.Fatal(err)
		}
		p := publishedTemplate{name: strings.TrimSuffix(doc.Template, ".jinja"), source: string(source)}
		for _, c := range doc.Cases {
			if c.Expected != "" && len(c.Vars.Tools) == 0 && !strings.HasPrefix(c.ID, "tool") {
				p.talks = append(p.talks, c.messages())
			}
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		t.Skip("no reference templates: set SANDWICH_TESTDATA to the folder that holds them")
	}
	return out
}

// chatSum hashes the ids of conversations without spellings of control tokens.
func chatSum(t *testing.T, path string, templates []publishedTemplate) string {
	t.Helper()
	tok := load(t, path)
	h := sha256.New()
	add := func(talk []api.Message) {
		ids, err := tok.ChatIDs(t.Context(), talk, true)
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(path), err)
		}
		_ = binary.Write(h, binary.LittleEndian, ids)
	}
	add(said("user", "Tell me a story.", "assistant", " Once…\n", "user", "  Go on.\n\n你好 <b>é</b>"))
	chat, calls, guards := tok.chat, tok.calls, tok.guards
	defer func() { tok.chat, tok.calls, tok.guards = chat, calls, guards }()
	for _, p := range templates {
		tok.readChat(fields{keyTemplate: p.source})
		for _, talk := range p.talks {
			if !slices.ContainsFunc(talk, func(m api.Message) bool { return m.Role == "tool" || len(m.Calls) > 0 }) {
				add(talk)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
