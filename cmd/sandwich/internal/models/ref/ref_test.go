package ref

import (
	"strings"
	"testing"
)

// TestParse checks the canonical form, host and repository of each form of a reference.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"hf:Qwen/Qwen3-0.6B-GGUF":             "hf:Qwen/Qwen3-0.6B-GGUF|0||Qwen/Qwen3-0.6B-GGUF||",
		"hf:Qwen/Qwen3-0.6B-GGUF:Q8_0":        "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0|0||Qwen/Qwen3-0.6B-GGUF|Q8_0|",
		"hf:a/b:model-Q4_K_M.gguf":            "hf:a/b:model-Q4_K_M.gguf|0||a/b|model-Q4_K_M.gguf|",
		"hf.co/Qwen/Qwen3-0.6B-GGUF:Q8_0":     "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0|0||Qwen/Qwen3-0.6B-GGUF|Q8_0|",
		"huggingface.co/a/b":                  "hf:a/b|0||a/b||",
		"ollama:qwen3":                        "ollama:qwen3:latest|1|registry.ollama.ai|library/qwen3||latest",
		"ollama:qwen3:0.6b":                   "ollama:qwen3:0.6b|1|registry.ollama.ai|library/qwen3||0.6b",
		"ollama:me/tales:1":                   "ollama:me/tales:1|1|registry.ollama.ai|me/tales||1",
		"ollama:127.0.0.1:99/library/m:1":     "ollama:127.0.0.1:99/library/m:1|1|127.0.0.1:99|library/m||1",
		"registry.example/ai/tales":           "registry.example/ai/tales:latest|1|registry.example|ai/tales||latest",
		"registry.example:5000/tales:q8":      "registry.example:5000/tales:q8|1|registry.example:5000|tales||q8",
		"localhost/tales:q8":                  "localhost/tales:q8|1|localhost|tales||q8",
		"https://files.example/m.gguf#x":      "https://files.example/m.gguf|2|files.example|||",
		"http://127.0.0.1:80/m.gguf?download": "http://127.0.0.1:80/m.gguf?download|2|127.0.0.1:80|||",
		"oci:/a/b/../layout:v1":               "oci:/a/layout:v1|3||/a/layout||v1",
		"oci:/a:b/layout":                     "oci:/a:b/layout:latest|3||/a:b/layout||latest",
		"http://[::1]:80/m.gguf":              "http://[::1]:80/m.gguf|2|[::1]:80|||",
	} {
		r, err := Parse(text)
		got := strings.Join([]string{r.Text, string('0' + rune(r.Kind)), r.Host, r.Repo, r.Variant, r.Tag}, "|")
		if err != nil || got != want || !Is(text) {
			t.Errorf("%s: %s, %v, reference: %v; want %s", text, got, err, Is(text), want)
		}
	}
}

// TestParseRefuses checks that texts that are not references, and parts that are not names, are
// rejected.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "llama", "hf:", "hf:a", "hf:/b", "hf:a/", "hf:a/../b", "hf:../b", "hf:a/b/c",
		"hf:a/b:", "hf:a/b:../x", "hf:a/b:c/d", "hf:a/b\n", "hf:-a/b", "ollama:", "ollama:a/b/c/d", "ollama:../x",
		"ollama:a:b:c", "ollama:a b", "ollama:h/../x", "registry.example/", "registry.example/UPPER",
		"registry.example/a/../b", "registry.example/a:b:c", "registry.example/a@sha256:12", "oci:", "oci::x",
		"oci:a:", "oci:a:b c",
		"http://files.example/m.gguf", "https://user:pw@files.example/m.gguf", "https://files.example/",
		"https://files.example", "https:///m.gguf", "http://127.0.0.1.example/m.gguf", "ftp://files.example/m",
		"hf:a/" + strings.Repeat("b", 200), "https://h/" + strings.Repeat("b", 2000)} {
		if r, err := Parse(text); err == nil {
			t.Errorf("%q is taken as %+v", text, r)
		}
	}
	for _, text := range []string{"", "llama", "models/x.gguf", "models.d/x.gguf", "./a.b/c", "../a.b/c", "/a.b/c",
		"x.gguf", "a.b/", "a.b/config.json"} {
		if Is(text) {
			t.Errorf("%q is taken for a reference", text)
		}
	}
}

// TestFileName checks that names that a server sends become one component of a path.
func TestFileName(t *testing.T) {
	for remote, want := range map[string]string{"m.gguf": "m.gguf",
		"Q8_0/m-00001-of-00002.gguf": "m-00001-of-00002.gguf",
		"../../m.gguf":               "m.gguf", `..\..\m.gguf`: "m.gguf", "/etc/passwd": "passwd",
		"a b\x1b[31m.gguf": "a_b__31m.gguf",
		"naïve.gguf":       "na_ve.gguf", "a\x00b": "a_b", "\u202efugg.m": "_fugg.m",
		"": "", "..": "", ".": "", "a/..": "",
		".bashrc": "", "x/.": "", "-rf": "", "a..b": "", strings.Repeat("x", 151): "", "a/": "",
		"\xff\xfe.gguf": "_.gguf"} {
		got, err := FileName(remote)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v; want %q", remote, got, err, want)
		}
	}
	for file, want := range map[string]string{"m-00001-of-00002.gguf": "m", "m.gguf": "m", "m": "m"} {
		if got := Stem(file); got != want {
			t.Errorf("stem of %s: %s, want %s", file, got, want)
		}
	}
}

// TestLoopback checks hosts with and without a port.
func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "localhost:80": true, "127.0.0.1": true,
		"127.9.9.9:5000": true, "::1": true, "[::1]": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"localhost.example": false, "127.0.0.1.example:80": false, "10.0.0.1": false, "[::2]:80": false, "": false} {
		if got := Loopback(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

// TestOrigin checks that only loopback hosts are contacted without TLS.
func TestOrigin(t *testing.T) {
	for host, want := range map[string]string{"a.example": "https://a.example",
		"10.0.0.1:5000":  "https://10.0.0.1:5000",
		"127.0.0.1:5000": "http://127.0.0.1:5000", "localhost": "http://localhost", "[::1]:80": "http://[::1]:80",
		"localhost.example": "https://localhost.example"} {
		if got := Origin(host).String(); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}
