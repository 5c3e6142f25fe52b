package exchange

import (
	"net/http/httptest"
	"testing"
)

// TestTrace checks which traceparent headers have a trace id for the log.
func TestTrace(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for header, want := range map[string]string{
		"":                                  "",
		"00-" + id + "-b7ad6b7169203331-01": id,
		"cc-" + id + "-b7ad6b7169203331-01-extra":                 id, // of a later version
		"00-" + id + "-b7ad6b7169203331-01-extra":                 "",
		"ff-" + id + "-b7ad6b7169203331-01":                       "",
		"00-" + id + "-0000000000000000-01":                       "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01": "",
		"00-" + id + "-b7ad6b7169203331":                          "",
		"00-" + id[1:] + "\n-b7ad6b7169203331-01":                 "",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Traceparent"] = []string{header}
		if got := NewExchange(httptest.NewRecorder(), r, "/").Trace; got != want {
			t.Errorf("traceparent %q: trace id %q, want %q", header, got, want)
		}
	}
}
