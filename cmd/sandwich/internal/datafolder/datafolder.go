// Package datafolder locates the folder with the data of the user.
package datafolder

import (
	"errors"
	"os"
	"path/filepath"
)

// Path returns the folder where tune writes plans and the other verbs look for them:
// $XDG_DATA_HOME/sandwich, else ~/.local/share/sandwich.
func Path() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sandwich"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", errors.New("there is no data folder; set XDG_DATA_HOME or HOME")
	}
	return filepath.Join(home, ".local", "share", "sandwich"), nil
}
