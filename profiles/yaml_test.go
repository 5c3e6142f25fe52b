package profiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestDecodeYAMLRefuses(t *testing.T) {
	type doc struct {
		A int   `yaml:"a"`
		L []int `yaml:"l"`
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n" // the billion laughs
	for c := 'b'; c <= 'i'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 8) + "*" + p + "]\n"
	}
	for name, text := range map[string]string{
		"empty":           "",
		"comment only":    "# nothing\n",
		"unknown field":   "a: 1\nb: 2\n",
		"key twice":       "a: 1\na: 2\n",
		"alias":           "a: &x 1\nl: [*x]\n",
		"anchor":          "a: &x 1\n",
		"tag":             "a: !!int 1\n",
		"bomb":            bomb,
		"two documents":   "a: 1\n---\na: 2\n",
		"deep":            "l: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"overflow":        "a: 99999999999999999999\n",
		"no mapping":      "[1, 2]\n",
		"binary":          "\x00\x01\xff\xfe",
		"too many values": "l: [" + strings.Repeat("1,", maxYAMLNodes) + "1]",
		"too long":        "# " + strings.Repeat("x", MaxYAMLBytes),
	} {
		var d doc
		if err := DecodeYAML([]byte(text), &d); !errors.Is(err, ErrYAML) {
			t.Errorf("%s: %v", name, err)
		} else if len(err.Error()) > 500 {
			t.Errorf("%s: the message has %d bytes", name, len(err.Error()))
		}
	}
	var d doc
	if err := DecodeYAML([]byte("a: 3\nl: [1, 2]\n"), &d); err != nil || d.A != 3 || len(d.L) != 2 {
		t.Errorf("a sound document: %+v, %v", d, err)
	}
}

func TestCanonicalJSON(t *testing.T) {
	b, err := CanonicalJSON(struct {
		Z int            `json:"z"`
		A map[string]any `json:"a"`
	}{1, map[string]any{"y": "<&>", "b": 1e21, "c": 0.1}})
	if want := `{"a":{"b":1e+21,"c":0.1,"y":"<&>"},"z":1}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
	if _, err := CanonicalJSON(math.NaN()); err == nil {
		t.Error("NaN was rendered")
	}
}

// FuzzCanonicalJSON checks that sorting the text equals decoding and encoding it.
func FuzzCanonicalJSON(f *testing.F) {
	for _, text := range []string{`{"b":1,"a":[{"z":null,"y":{"d":0.10,"c":true}},[],{}],"":"<&>\u2028"}`,
		`[1e21,"\""]`,
		`{"a":1,"a":2}`, `"\ufffd\\"`, `{"\n":1,"b":{"q":[[{"f":1,"e":2}]]},"aa":1,"a":2}`, `7`, ``, `{"a" : [ 1 ] }`,
		`{"a\"b":1,"a":"\\"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return
		}
		for _, x := range []any{v, json.RawMessage(text), struct {
			B string `json:"b"`
			A any    `json:"a"`
		}{string(text), v}} {
			raw, err := json.Marshal(x)
			if err != nil {
				continue // something follows the first value
			}
			want, err := decodedJSON(raw)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := CanonicalJSON(x); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s\n%s, %v; want\n%s", raw, got, err, want)
			}
		}
	})
}

func TestFigure(t *testing.T) {
	f := NewFigure("B/s", []float64{5, 1, 3, 2, 4})
	if f.Median != 3 || f.Min != 1 || f.Max != 5 || f.N != 5 || f.Noise != 0.3333 || !f.Measured() ||
		f.Provenance() != "measured" {
		t.Errorf("%+v", f)
	}
	for name, bad := range map[string]Figure{
		"no origin":           {Median: 1},
		"measured and quoted": {Median: 1, N: 1, Source: "x"},
		"negative":            {Median: -1, Assumed: true},
		"NaN":                 {Median: math.NaN(), Assumed: true},
		"infinite":            {Median: 1, Max: math.Inf(1), Assumed: true},
	} {
		if bad.Check("x") == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
