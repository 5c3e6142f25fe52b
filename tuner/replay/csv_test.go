package replay

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/sched"
)

func TestReadCSV(t *testing.T) {
	want := Trace{{At: time.Second, Class: sched.Reactive, Prompt: 10, Output: 5},
		{At: time.Second, Class: sched.Proactive, Prompt: 7, Output: 1}}
	for name, text := range map[string]string{
		"plain":        "1,reactive,10,5\n1.0,proactive,7,1\n",
		"header":       "at,class,prompt,output\n1,,10,5\n1,proactive,7,1\n",
		"other order":  "output, prompt, at, class\r\n5,10,1,\"reactive\"\r\n1,7,1,proactive",
		"json as ever": `{"at":1,"prompt":10,"output":5}` + "\n" + `{"at":1,"class":"proactive","prompt":7,"output":1}`,
	} {
		got, err := Read(strings.NewReader(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for text, says := range map[string]string{
		"-1,reactive,10,5":                   "line 1",
		"at,prompt,output\n1,10":             "line 2",
		"1,reactive,10,many":                 "not a number",
		"at,prompt,output\n2,1,1\n1,1,1":     "sort the trace",
		"at,prompt,output\nNaN,1,1":          "not a valid time",
		"at,class,prompt,output\n1,slow,1,1": "class",
		"at,at\n1,1":                         "prompt",
		"at,prompt,output\n":                 "no request",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}
