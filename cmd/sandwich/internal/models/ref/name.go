package ref

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// longestName limits the length of names of models and files in bytes.
const longestName = 150

var modelName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)

// CheckName rejects names of models that are not one component of a path, or that a command line
// could take for a flag or a reference.
func CheckName(name string) error {
	if len(name) > longestName || !modelName.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%.80q is not a valid name of a model; use up to %d letters, digits, and . _ + -", name,
			longestName)
	}
	return nil
}

// FileName returns the last component of a path or a title that a server sent, with other
// characters than letters, digits and ._+- replaced by _. It returns an error if no valid name
// remains.
func FileName(remote string) (string, error) {
	base := remote[strings.LastIndexAny(remote, `/\`)+1:]
	name := strings.Map(func(r rune) rune {
		if r < 128 && modelName.MatchString("a"+string(r)) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(base, "_"))
	if err := CheckName(name); err != nil {
		return "", errors.New("the server names a file " + fmt.Sprintf("%.80q", remote) +
			", which is not usable as a " +
			"file name")
	}
	return name, nil
}

// split matches the number of a part in the name of a file.
var split = regexp.MustCompile(`-\d{5}-of-\d{5}$`)

// Stem returns the name of a GGUF file without its extension and the number of its part.
func Stem(file string) string { return split.ReplaceAllString(strings.TrimSuffix(file, ".gguf"), "") }
