package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// columns parses lines of comma-separated values.
type columns struct{ names []string }

// csvColumns is the order of the columns without a header.
const csvColumns = "at,class,prompt,output"

// header reports whether the first line is a header, and takes its column names if so.
func (c *columns) header(line []byte) bool {
	c.names = strings.Split(csvColumns, ",")
	words := strings.Split(strings.ToLower(string(line)), ",")
	var names []string
	for _, w := range words {
		if w = strings.TrimSpace(w); !slices.Contains(c.names, w) {
			return false
		}
		names = append(names, w)
	}
	c.names = names
	return true
}

func (c *columns) parse(line []byte) (Request, error) {
	fields := strings.Split(string(line), ",")
	if len(fields) != len(c.names) {
		return Request{}, fmt.Errorf("%d values for the columns %s", len(fields), strings.Join(c.names, ","))
	}
	var r record
	for i, name := range c.names {
		text := strings.Trim(strings.TrimSpace(fields[i]), `"`)
		var err error
		switch name {
		case "at":
			r.At, err = strconv.ParseFloat(text, 64)
		case "class":
			r.Class = text
		case "prompt":
			r.Prompt, err = strconv.Atoi(text)
		case "output":
			r.Output, err = strconv.Atoi(text)
		}
		if err != nil {
			return Request{}, fmt.Errorf("%s %.40q is not a number", name, text)
		}
	}
	return r.request()
}
