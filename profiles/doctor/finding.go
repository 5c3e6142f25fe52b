package doctor

import (
	"io/fs"
	"strings"

	"sandwich/profiles"
)

// Level is the severity of a finding.
type Level string

// The levels.
const (
	OK    Level = "ok"
	Note  Level = "note"  // worth knowing; nothing to win by a setting
	Costs Level = "costs" // costs speed, and there is a remedy
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// Host is the machine to check.
type Host struct {
	Profile *profiles.Profile
	Root    fs.FS // holds sys/ and proc/
	Live    bool  // Root is that of this machine, now
}

func one(check string, level Level, found, remedy string) []Finding {
	return []Finding{{check, level, found, remedy}}
}

// readLine returns the first line of a small file, "" if it cannot be read.
func readLine(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, _ := f.Read(buf)
	first, _, _ := strings.Cut(string(buf[:n]), "\n")
	return first
}

// readWord returns the first word of a small file.
func readWord(root fs.FS, name string) string {
	if words := strings.Fields(readLine(root, name)); len(words) > 0 {
		return words[0]
	}
	return ""
}
