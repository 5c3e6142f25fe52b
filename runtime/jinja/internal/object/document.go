package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// BigInt is an integer of a document that does not fit 64 bits, in decimal. Templates print it
// exactly and compute with its nearest float64.
type BigInt string

func (b BigInt) float() float64 {
	f, _ := strconv.ParseFloat(string(b), 64)
	return f
}

// maxDocumentDepth is the largest nesting depth of a JSON document.
const maxDocumentDepth = 128

// FromJSON parses one JSON value into the values that templates use. Objects keep the order of
// their keys.
func FromJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readDocument(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON value")
	}
	return v, nil
}

func readDocument(d *json.Decoder, depth int) (any, error) {
	if depth > maxDocumentDepth {
		return nil, fmt.Errorf("the JSON value is nested more than %d levels deep", maxDocumentDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n), nil
		}
		if !strings.ContainsAny(v.String(), ".eE") {
			return BigInt(v), nil
		}
		return v.Float64()
	case json.Delim:
		if v == '[' {
			return readItems(d, depth)
		}
		return readEntries(d, depth)
	}
	return token, nil
}

func readItems(d *json.Decoder, depth int) (any, error) {
	list := NewList()
	for d.More() {
		item, err := readDocument(d, depth+1)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, item)
	}
	_, err := d.Token()
	return list, err
}

func readEntries(d *json.Decoder, depth int) (any, error) {
	dict := &Dict{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		item, err := readDocument(d, depth+1)
		if err != nil {
			return nil, err
		}
		dict.Set(key.(string), item)
	}
	_, err := d.Token()
	return dict, err
}

// Has reports whether d contains a key.
func (d *Dict) Has(key string) bool {
	_, ok := d.get(key)
	return ok
}
