package page

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Wanted reports whether a request for / is for the page: it is a GET whose Accept header names
// text/html. Clients of the API send */* or no header and get text.
func Wanted(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	html, plain := 0.0, 0.0
	for _, list := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(list, ",") {
			kind, parameters, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			switch kind {
			case "text/html":
				html = max(html, quality(parameters["q"]))
			case "text/plain":
				plain = max(plain, quality(parameters["q"]))
			}
		}
	}
	return html > 0 && html >= plain
}

// quality returns the value of the parameter q of a media range: 1 if it is absent, 0 if it is
// invalid.
func quality(text string) float64 {
	if text == "" {
		return 1
	}
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}
