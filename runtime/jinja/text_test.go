package jinja

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/jinja/internal/object"
)

// spelled formats a text with its origins in brackets: [1:abc].
func spelled(t object.Text) string {
	var out strings.Builder
	at := 0
	for _, s := range t.Spans {
		out.WriteString(t.Plain[at:s.From])
		out.WriteString("[" + string(rune('0'+s.Origin)) + ":" + t.Plain[s.From:s.To] + "]")
		at = s.To
	}
	return out.String() + t.Plain[at:]
}

// checkSpans fails unless the spans of a text ascend, are not empty and do not overlap.
func checkSpans(t *testing.T, text object.Text) {
	t.Helper()
	at := 0
	for _, s := range text.Spans {
		if s.From < at || s.To <= s.From || s.To > len(text.Plain) || s.Origin == 0 {
			t.Fatalf("span %+v after byte %d of %d", s, at, len(text.Plain))
		}
		at = s.To
	}
}

// TestOrigins renders templates over a = "  héllo, <World>\n" (origin 1), b = "b" (origin 2) and
// d = {"k": "v", "q": 'say "x"'} (origin 3) and compares the text and the origins of its parts.
func TestOrigins(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"<{{ a }}>", "<[1:  héllo, <World>\n]>"},
		{"{{ a | trim }}{{ b }}", "[1:héllo, <World>][2:b]"},
		{"{{ a.strip() + '|' + b }}", "[1:héllo, <World>]|[2:b]"},
		{"{{ a.lstrip() }}{{ a.rstrip() }}", "[1:héllo, <World>\n  héllo, <World>]"},
		{"{{ a.strip('\\n >')[1:-1] }}", "[1:éllo, <Worl]"},
		{"{{ a[2] }}{{ a[3] }}{{ a[::-1][1] }}{{ b[0] }}", "[1:hé>][2:b]"},
		{"{{ a[2:8:2] }}", "[1:hlo]"},
		{"{{ (a ~ b)[-3:] }}", "[1:>\n][2:b]"},
		{"{{ a.split(',')[1] }}{{ a.split()[0] }}{{ a.rsplit(None, 1)[1] }}", "[1: <World>\nhéllo,<World>]"},
		{"{{ a.splitlines()[0] }}{{ a.partition('<')[2] }}{{ a.rpartition(',') | first }}",
			"[1:  héllo, <World>World>\n  héllo]"},
		{"{{ a | trim | replace('l', 'L') }}", "[1:hé]LL[1:o, <Wor]L[1:d>]"},
		{"{{ 'x-x'.replace('x', b) }}", "[2:b]-[2:b]"},
		{"{{ b.replace('', '.') }}", ".[2:b]."},
		{"{{ a | trim | upper }}{{ b | title }}", "[1:HÉLLO, <WORLD>][2:B]"},
		{"{{ ('ß' ~ b ~ 'é') | upper }}|{{ (a ~ b) | trim | capitalize }}", "ß[2:B]É|[1:Héllo, <world>\n][2:b]"},
		{"{{ ('İ' ~ b ~ 'ı' ~ b) | lower }}{{ ('ı' ~ b) | upper }}", "i[2:b]ı[2:b]I[2:B]"},
		{"{{ [a | trim, 1, b] | join(', ') }}", "[1:héllo, <World>], 1, [2:b]"},
		{"{{ '/'.join([b, 'x', b]) }}{{ b.join(['1', '2']) }}", "[2:b]/x/[2:b]1[2:b]2"},
		{"{{ a | trim | tojson }}", `"[1:héllo, <World>]"`},
		{"{{ a[-2:] | tojson }}{{ d | tojson }}", `"[1:>\n]"{"[3:k]": "[3:v]", "[3:q]": "[3:say \"x\"]"}`},
		{"{{ a | trim | e }}", "[1:héllo, &lt;World&gt;]"},
		{"{{ [b, d] }}", `['[2:b]', {'[3:k]': '[3:v]', '[3:q]': '[3:say "x"]'}]`},
		{"{{ '{}:{x!r:>5}'.format(b, x=b) }}|{{ '{0[k]}{{}}'.format(d) }}", "[2:b]:  '[2:b]'|[3:v]{}"},
		{"{{ '%s=%3s%%' % (b, b) }}{{ '%(k)s' % d }}{{ b % () }}", "[2:b]=  [2:b]%[3:v][2:b]"},
		{"{{ '%s-%s' | format(b, 1) }}{{ b.center(3, '.') }}{{ b.ljust(2) }}", "[2:b]-1.[2:b].[2:b] "},
		{"{{ (b ~ '\\n' ~ b) | indent(2) }}", "[2:b]\n  [2:b]"},
		{"{{ b * 2 }}{{ (b ~ '.') * 2 }}", "[2:bbb].[2:b]."},
		{"{% for c in b ~ 'x' ~ b %}{{ c }}{{ loop.index }}{% endfor %}", "[2:b]1x2[2:b]3"},
		{"{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(b) }}{{ m(m(b)) }}", "<[2:b]><<[2:b]>>"},
		{"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ b }}.{% endcall %}", "<[2:b].>"},
		{"{% set x %}-{{ b }}{% endset %}{{ x }}{% filter upper %}x{{ b }}{% endfilter %}", "-[2:b]X[2:B]"},
		{"{% set ns = namespace(s='') %}{% for i in [1, 2] %}{% set ns.s = ns.s + b %}{% endfor %}{{ ns.s }}",
			"[2:bb]"},
		{"{{ d.k }}{{ d['k'] }}{{ d | items | map(attribute=1) | join }}", "[3:vvvsay \"x\"]"},
		{"{{ d | dictsort(by='value') | first | first }}{{ d.values() | list | last }}", "[3:qsay \"x\"]"},
		{"{% for k, v in d.items() %}{{ k }}={{ v | string }};{% endfor %}", `[3:k]=[3:v];[3:q]=[3:say "x"];`},
		{"{{ {'b': 1}[b] }}{{ [b] | unique | list }}{{ b == 'b' }}{{ b in ['b'] }}{{ 'b' in b }}",
			"1['[2:b]']TrueTrueTrue"},
		{"{{ [[b, 'y'], [b, 'x']] | groupby(0) | first | first }}{{ ['c', b] | min }}{{ [b, 'a'] | sort | last }}",
			"[2:bbb]"},
		{"{{ b is string }}{{ b is sequence }}{{ b is iterable }}{{ b | length }}{{ b.startswith('b') }}",
			"TrueTrueTrue1True"},
		{"{{ b or 'x' }}{{ x | default(b) }}{{ b if b else 'c' }}{{ cycler(b, 'z').next() }}{{ joiner(b)() }}",
			"[2:bbbb]"},
		{"{{ (b ~ 'ab').removeprefix('b').removesuffix('b') }}{{ (b ~ b).removeprefix('b') }}", "a[2:b]"},
		{"{{ b | int(7) }}{{ '5' | int }}{{ b | wordcount }}{{ (b ~ ' c') | list | join }}", "751[2:b] c"},
	} {
		template, err := Parse(c.source)
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		d := new(object.Dict).Set("k", "v").Set("q", `say "x"`)
		vars := new(object.Dict).Set("a", object.Marked("  héllo, <World>\n", 1).Value()).Set("b", object.Marked("b",
			2).Value()).
			Set("d", object.Mark(d, 3))
		out, err := template.Render(context.Background(), vars, now, ample)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		checkSpans(t, out.Text)
		if got := spelled(out.Text); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.source, got, c.want)
		}
	}
}

// TestMatches checks that Output reports text found in a marked text, but not a failed search.
func TestMatches(t *testing.T) {
	for source, want := range map[string]string{
		"{{ '/no' in a }}{{ '/yes' in a }}":                     "/no",
		"{{ a.replace('/no', '') }}{{ a.replace('x', '') }}":    "/no",
		"{{ a.split('/')[1] }}{{ a.split('?') }}":               "/",
		"{{ a.startswith('/') }}{{ a.endswith(('o', 'q')) }}":   "/ o",
		"{{ a == '/no' }}{{ a == b }}{{ b in a }}{{ '' in a }}": "/no",
		"{{ a.removeprefix('/n') }}{{ a.partition('n') }}":      "/n n",
	} {
		template, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		vars := new(object.Dict).Set("a", object.Marked("/no", 1).Value()).Set("b", object.Marked("/no", 2).Value())
		out, err := template.Render(context.Background(), vars, now, ample)
		if got := strings.Join(out.Matches[1], " "); err != nil || got != want || len(out.Matches[2]) > 0 {
			t.Errorf("%s: %q, %q, %v, want %q", source, got, out.Matches[2], err, want)
		}
	}
}

// TestMarkedParity checks that marking strings does not change the output.
func TestMarkedParity(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "jinja2.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Vars  json.RawMessage
		Cases []struct{ Template string }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range doc.Cases {
		want, failed := render(t, c.Template, fromJSON(t, doc.Vars).(*object.Dict))
		template, err := Parse(c.Template)
		if err != nil {
			continue
		}
		vars := fromJSON(t, doc.Vars).(*object.Dict)
		for i := range vars.Entries {
			vars.Entries[i].Value = object.Mark(vars.Entries[i].Value, object.Origin(i+1))
		}
		got, err := template.Render(context.Background(), vars, now, ample)
		if (err == nil) != (failed == nil) || err == nil && got.Plain != want {
			t.Errorf("%s: %q, %v; unmarked %q, %v", c.Template, got.Plain, err, want, failed)
		}
		checkSpans(t, got.Text)
	}
}

// TestMarkedBombs checks that spans count against the limits.
func TestMarkedBombs(t *testing.T) {
	const spans = "{% set x = (a * 20000) | list | join('.') %}"
	for name, source := range map[string]string{
		"joined":     "{% set l = (a * 1000) | list %}" + loops(1, "{% set x = l | join('.') %}"),
		"sliced":     spans + loops(1, "{% set y = x[1:] %}"),
		"doubled":    "{% set ns = namespace(x=a ~ '.') %}" + loops(1, "{% set ns.x = ns.x ~ ns.x %}"),
		"characters": "{% set x = a * 100000 %}" + loops(1, "{% for c in x %}{% endfor %}"),
		"upper":      spans + loops(1, "{% set y = x.upper() %}"),
		"replaced":   "{% set x = 'a' * 100000 %}" + loops(1, "{% set y = x.replace('', a) %}"),
	} {
		template, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		vars := new(object.Dict).Set("a", object.Marked("ab", 1).Value())
		if _, err := template.Render(context.Background(), vars, now, tight); err == nil {
			t.Errorf("%s: no limit stops it", name)
		}
	}
}
