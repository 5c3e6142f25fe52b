package jinja

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/jinja/internal/object"
)

// patience bounds the time until a rendering ends on a busy machine. Without limits, most bombs run
// for years.
const patience = 30 * time.Second

// tight are the limits that the tokenizer sets for a short conversation.
var tight = object.Limits{Time: 2 * time.Second, Steps: 5_000_000, Bytes: 16 << 20, Text: 256 << 10, Depth: 64}

func nested(opening string, n int, inside, closing string) string {
	return strings.Repeat(opening, n) + inside + strings.Repeat(closing, n)
}

func loops(n int, body string) string {
	return nested("{% for i in range(10000) %}", n, body, "{% endfor %}")
}

const big = "{% set x = 'ab' * 100000 %}"

// bombs are small templates that need much work, text or memory, or nest deeply.
var bombs = map[string]string{
	"empty loops":      loops(4, ""),
	"writing loops":    loops(2, "0123456789"),
	"loops in a block": "{% set x %}" + loops(3, "0123456789") + "{% endset %}",
	"sum of lists":     "{% set l=range(10000)|list %}{{ (l" + strings.Repeat("+l", 200) + ")|length }}",
	"range":            "{% for i in range(10**9) %}{% endfor %}",
	"huge range":       "{{ range(-9223372036854775807, 9223372036854775807)|length }}",
	"doubling text": "{% set ns = namespace(x='ab') %}{% for i in range(64) %}" +
		"{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
	"doubling lists": "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}" +
		"{% set ns.x = ns.x + ns.x %}{% endfor %}",
	"extending itself": "{% set l = [1] %}{% for i in range(64) %}{% set _ = l.extend(l) %}{% endfor %}",
	"appending":        "{% set l = [] %}" + loops(3, "{% set _ = l.append(1) %}"),
	"growing dict": "{% set d = {} %}" +
		loops(2, "{% set _ = d.update({loop.index ~ loop.length ~ i * 7919: i}) %}"),
	"keeping texts": big + "{% set l = [] %}{% for i in range(100000) %}{% set _ = l.append(x ~ i) %}" +
		"{% endfor %}",
	"nesting lists": "{% set ns = namespace(x=[1]) %}{% for i in range(10000) %}" +
		"{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
	"comparing deep": "{% set ns = namespace(x=[1],y=[1]) %}{% for i in range(999) %}" +
		"{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}{{ ns.x < ns.y }}",
	"containing itself": "{% set ns = namespace(x=1) %}{% set ns.x = ns %}{{ ns }}",
	"a list in itself":  "{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}",
	"shared lists": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}" +
		"{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
	"shared lists, json": "{% set ns = namespace(x=[]) %}{% for i in range(60) %}" +
		"{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
	"shared lists, equal": "{% set ns = namespace(x=[1],y=[1]) %}{% for i in range(60) %}" +
		"{% set ns.x = [ns.x,ns.x] %}{% set ns.y = [ns.y,ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
	"shared dicts, equal": "{% set ns = namespace(x={},y={}) %}{% for i in range(60) %}" +
		"{% set ns.x = {1:ns.x,2:ns.x} %}{% set ns.y = {1:ns.y,2:ns.y} %}{% endfor %}{{ ns.x == ns.y }}",
	"macro recursion":   "{% macro f(g) %}{{ g(g) }}{% endmacro %}{{ f(f) }}",
	"macro doubling":    "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
	"default recursion": "{% macro f(x=f()) %}{% endmacro %}{{ f() }}",
	"caller recursion": "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}" +
		"{{ g() }}{% endcall %}{% endmacro %}{{ g() }}",
	"recursive loop":      "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
	"repetition":          "{{ 'a' * 1000000000 }}",
	"repetition, empty":   "{{ [[]] * 1000000000 }}",
	"repetition, product": "{{ ('a' * 9223372036854775807)|length }}",
	"power":               "{{ 10 ** 400 }}",
	"replacing":           "{% set x = 'aaaaaaaaaaaaaaaa' %}" + strings.Repeat("{% set x = x | replace('', x) %}", 10),
	"replacing a letter":  "{% set x = 'a' * 100000 %}{{ x.replace('a', x) }}",
	"joining":             big + "{{ range(100000)|join(x) }}",
	"joining by method":   big + "{{ x.join(x) }}",
	"format width":        "{{ '{:>99999999}'.format(1) }}",
	"format zeros":        "{{ '%0999999999d' % 1 }}",
	"format precision":    "{{ '{:.999999999f}'.format(1.5) }}",
	"printf precision":    "{{ '%.999999999f' % 1.5 }}",
	"format star":         "{{ '%*d' % (999999999, 1) }}",
	"format again":        big + "{{ ('{0}' * 1000).format(x) }}",
	"format overflow":     "{{ '{:99999999999999999999999999}'.format(1) }}",
	"format nested width": "{{ '{:{w}}'.format(1, w=999999999) }}",
	"indent":              "{{ ('\\n' * 100000)|indent(100000, blank=true) }}",
	"json indent":         "{{ [[[[1]]]]|tojson(indent=999999999) }}",
	"json escapes":        "{{ ('\\x01' * 200000)|tojson }}",
	"escape":              "{{ ('&' * 200000)|e }}",
	"center":              "{{ 'x'.center(1000000000) }}{{ 'x'|center(1000000000) }}",
	"zfill":               "{{ 'x'.zfill(1000000000) }}",
	"splitting":           "{% set x = 'a ' * 100000 %}" + loops(1, "{% set y = x.split() %}"),
	"letters":             big + loops(1, "{% for c in x %}{% endfor %}"),
	"searching":           big + loops(2, "{% if 'abb' in x %}{% endif %}"),
	"stripping a set":     "{% set x = 'a' * 200000 %}{{ x.strip('b' * 200000 ~ 'a') }}",
	"counting":            big + loops(2, "{% set y = x|length %}"),
	"reading one letter":  big + loops(2, "{% set y = x[99999] %}"),
	"finding":             big + loops(2, "{% set y = x.find('abb') %}"),
	"upper":               big + loops(2, "{% set y = x.upper() %}"),
	"slicing":             "{% set l = range(100000)|list %}" + loops(1, "{% set y = l[::-1] %}"),
	"looking for":         "{% set l = range(100000)|list %}" + loops(1, "{% set y = -1 in l %}"),
	"sorting":             "{% set l = range(100000)|list %}" + loops(1, "{% set y = l|sort(reverse=true) %}"),
	"unique":              "{% set l = range(100000)|list %}" + loops(1, "{% set y = l|unique %}"),
	"mapping": "{% set l = range(100000)|list %}" +
		"" + loops(1, "{% set y = l|map('string')|select('eq', 'x')|list %}"),
	"path":              "{{ range(100000)|map(attribute='" + strings.Repeat("a.", 10000) + "')|list }}",
	"popping":           "{% set l = range(100000)|list %}" + loops(2, "{% set y = l.pop(0) %}"),
	"many names":        loops(2, "{% set a = 1 %}{% set b = 2 %}{% set c = 3 %}{% set d = 4 %}"),
	"kept macros":       "{% set l = [] %}" + loops(2, "{% macro f() %}{% endmacro %}{% set _ = l.append(f) %}"),
	"star arguments":    "{% macro f() %}{% endmacro %}{% set l = range(100000)|list %}" + loops(1, "{{ f(*l) }}"),
	"filter blocks":     nested("{% filter replace('a', 'aaaaaaaaaa') %}", 20, "a", "{% endfilter %}"),
	"time":              "{{ strftime_now('%c' * 60000) }}",
	"long chain":        "{{ x" + strings.Repeat(" ~ x", 3000) + " }}",
	"filter chain":      "{{ x" + strings.Repeat("|trim", 3000) + " }}",
	"attribute chain":   "{{ x" + strings.Repeat(".x", 3000) + " }}",
	"test chain":        "{{ x" + strings.Repeat(" is defined", 3000) + " }}",
	"call chain":        "{{ x" + strings.Repeat("()", 3000) + " }}",
	"and chain":         "{{ x" + strings.Repeat(" and x", 3000) + " }}",
	"conditional chain": "{{ x" + strings.Repeat(" if x else x", 3000) + " }}",
	"not chain":         "{{ " + strings.Repeat("not ", 30000) + "x }}",
	"sign chain":        "{{ " + strings.Repeat("-", 100_000) + "1 }}",
	"parentheses":       "{{ " + strings.Repeat("(", 100_000) + " }}",
	"brackets":          "{{ " + nested("[", 60_000, "", "]") + " }}",
	"braces":            "{{ " + nested("{1:", 30_000, "1", "}") + " }}",
	"targets":           "{% set " + nested("(", 60_000, "a", ")") + " = 1 %}",
	"nested blocks":     nested("{% if x %}", 5_000, "", "{% endif %}"),
	"open blocks":       strings.Repeat("{% if x %}", 10_000),
	"open comment":      strings.Repeat("{#", 60_000),
	"open raw":          "{% raw %}" + strings.Repeat("{% ", 40_000),
	"long source":       strings.Repeat("x", 10<<20),
}

// TestBombs checks that each bomb fails with one sentence within the limits of time and memory.
func TestBombs(t *testing.T) {
	var slowest, largest string
	var highest time.Duration
	var much uint64
	for name, source := range bombs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		err := explode(context.Background(), source)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		made := after.TotalAlloc - before.TotalAlloc
		if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
			t.Errorf("%s: got %v, want one short sentence", name, err)
		}
		if took > tight.Time+patience || made > 256<<20 {
			t.Errorf("%s: %v and %d MB until %v", name, took, made>>20, err)
		}
		if took > highest {
			highest, slowest = took, name
		}
		if made > much {
			much, largest = made, name
		}
		t.Logf("%-20s %8.1f ms %6.1f MB  %v", name, took.Seconds()*1e3, float64(made)/(1<<20), err)
	}
	t.Logf("%d bombs; the slowest is %s with %v, the largest %s with %d MB",
		len(bombs), slowest, highest, largest, much>>20)
}

func explode(ctx context.Context, source string) error {
	template, err := Parse(source)
	if err != nil {
		return err
	}
	_, err = template.Render(ctx, &object.Dict{}, now, tight)
	return err
}

// TestAbandoned checks that a rendering ends soon after its context and returns the cause.
func TestAbandoned(t *testing.T) {
	gone := errors.New("the client left")
	for _, name := range []string{"empty loops", "sorting", "searching", "counting", "slicing",
		"shared lists, equal", "upper", "macro doubling"} {
		template, err := Parse(bombs[name])
		if err != nil {
			t.Fatal(err)
		}
		endless := object.Limits{Time: time.Hour, Steps: 1 << 50, Bytes: 1 << 50, Text: 1 << 30, Depth: 64}
		ctx, cancel := context.WithCancelCause(context.Background())
		var left time.Time
		timer := time.AfterFunc(50*time.Millisecond, func() { left = time.Now(); cancel(gone) })
		_, err = template.Render(ctx, &object.Dict{}, now, endless)
		took := time.Since(left)
		timer.Stop()
		if !errors.Is(err, gone) || took > patience {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		t.Logf("%-20s ended %v after its context", name, took)
	}
}

// TestRaised checks that the message of raise_exception is returned on one line, clipped if long.
func TestRaised(t *testing.T) {
	for source, want := range map[string]string{
		"{{ raise_exception('Roles  must\n alternate') }}": "Roles must alternate",
		"{% if true %}{{ raise_exception('é' * 1000) }}{% endif %}": strings.Repeat("é",
			150) + "...",
		"{% macro f() %}{{ raise_exception(none) }}{% endmacro %}{{ f()|upper|trim }}": "None",
	} {
		_, err := render(t, source, &object.Dict{})
		var raised *object.RaisedError
		if !errors.As(err, &raised) || raised.Message != want {
			t.Errorf("%s: got %v, want %s", source, err, want)
		}
	}
}
