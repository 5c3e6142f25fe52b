package serve

import (
	"fmt"
	"strings"

	"sandwich/profiles/retention"
	"sandwich/runtime/server/request"
)

// readKeys reads API keys, one per line. The default class of the requests of a key may follow it.
// Empty lines and lines that start with # are ignored.
func readKeys(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := retention.ReadRegular(path, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("--api-key-file: %w", err)
	}
	var keys []string
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		key := strings.TrimSpace(line)
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if !request.CheckKey(key) {
			return nil, fmt.Errorf("--api-key-file %s, line %d: only class=proactive or class=NUMBER may follow "+
				"a key",
				path, n)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("--api-key-file %s has no key; write one per line", path)
	}
	return keys, nil
}
