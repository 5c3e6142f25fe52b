package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"sandwich/cmd/sandwich/internal/models/modelserver"
)

// modelServerKey is the key of a script's server of models among its values.
const modelServerKey = "models"

// startModelServer starts an empty server of models for a script, which finds its address in
// HF_ENDPOINT and its host in HUB.
func startModelServer(e *testscript.Env) {
	s := modelserver.Start()
	e.Defer(s.Close)
	e.Values[modelServerKey] = s
	e.Setenv("HF_ENDPOINT", s.URL)
	e.Setenv("HUB", s.Host)
}

// serveModel makes the script's server of models serve files: publish hf OWNER/REPO FILE...,
// publish LAYER-TYPE REPO:TAG FILE..., or publish file PATH FILE.
func serveModel(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(modelServerKey).(*modelserver.Server)
	var contents [][]byte
	files := map[string][]byte{}
	for _, name := range args[2:] {
		data, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		contents = append(contents, data)
		files[filepath.Base(name)] = data
	}
	switch args[0] {
	case "hf":
		s.AddRepository(args[1], files)
	case "file":
		s.AddFile(args[1], contents[0])
	default:
		repository, tag, _ := strings.Cut(args[1], ":")
		s.AddArtifact(repository, tag, args[0], contents...)
	}
}
