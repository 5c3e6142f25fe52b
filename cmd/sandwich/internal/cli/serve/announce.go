package serve

import (
	"fmt"
	"io"
	"net"
	"strings"

	"sandwich/cmd/sandwich/internal/listen"
	"sandwich/runtime/server/generation"
)

// announce prints the addresses of the server, the name of what it serves, and an example request.
// withKey says that requests need an API key.
func announce(w io.Writer, urls []listen.URL, name string, m *generation.ModelInfo, withKey bool) {
	var bound []string
	for _, u := range urls {
		text, _ := describeURL(u)
		bound = append(bound, text)
	}
	_, example := describeURL(urls[0])
	auth := ""
	if withKey {
		auth = ` -H "Authorization: Bearer $API_KEY"`
	}
	path, body := tryOut(m)
	fmt.Fprintf(w, "serving %s on %s; try:\n", name, strings.Join(bound, " and "))
	fmt.Fprintf(w, "curl %s%s%s -H 'Content-Type: application/json' -d '%s'\n", example, path, auth, body)
}

// describeURL returns the text of an address, and arguments of curl that reach it.
func describeURL(u listen.URL) (bound, example string) {
	if path, ok := u.Addr.(*net.UnixAddr); ok {
		return "unix:" + path.Name, "--unix-socket " + path.Name + " http://localhost"
	}
	scheme := "http://"
	if u.Secure {
		scheme = "https://"
	}
	bound, example = scheme+u.Addr.String(), scheme+u.Addr.String()
	if h, port, err := net.SplitHostPort(u.Addr.String()); err == nil && net.ParseIP(h).IsUnspecified() {
		bound += ", all interfaces of this machine"
		example = scheme + net.JoinHostPort("127.0.0.1", port)
	}
	return bound, example
}

// tryOut returns an example request that suits the model.
func tryOut(m *generation.ModelInfo) (path, body string) {
	switch {
	case m.Scores:
		return "/v1/rerank", `{"query": "Who hunts at night?", "documents": ["The fox.", "The hen."]}`
	case m.Vector > 0:
		return "/v1/embeddings", `{"input": ["A story about a fox.", "The rain in Spain."]}`
	}
	return "/v1/chat/completions", `{"messages": [{"role": "user", "content": "Tell me a story about a fox."}], ` +
		`"max_tokens": 80, "temperature": 0.6}`
}
