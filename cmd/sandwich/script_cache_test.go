package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"sandwich/runtime/kvcache/disk"
)

// longestPrefix sets LONGEST to the name of the longest prefix of a prefix store: longest DIR.
func longestPrefix(ts *testscript.TestScript, _ bool, args []string) {
	s, err := disk.Open(ts.MkAbs(args[0]), disk.Options{})
	ts.Check(err)
	list, err := s.Prefixes()
	ts.Check(err)
	tokens := 0
	for i := range list {
		if n := len(list[i].Tokens); n > tokens {
			tokens = n
			ts.Setenv("LONGEST", list[i].Name.String())
		}
	}
}
