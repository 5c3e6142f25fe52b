//go:build unix

package owner

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIsUser checks a file of this user and, if this process may create one, a file of another
// user.
func TestIsUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	is := func() bool {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return IsUser(info)
	}
	if !is() {
		t.Error("a file of this user belongs to another one")
	}
	if os.Geteuid() != 0 {
		t.Skip("files of another user need root")
	}
	if err := os.Lchown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if is() {
		t.Error("a file of another user belongs to this one")
	}
}
