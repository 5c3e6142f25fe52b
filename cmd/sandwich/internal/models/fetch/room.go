package fetch

import (
	"fmt"
	"os"

	"sandwich/cmd/sandwich/internal/models/disk"
)

// Wanted describes the disk space that a download needs: Size bytes, of which parts may be stored
// at Base.
type Wanted struct {
	Base string
	Size int64 // negative: unknown
}

// spare is the disk space in bytes that downloads leave free for other files.
const spare = 64 << 20

// CheckRoom returns an error if the file system of a folder lacks the space for downloads, of which
// parts may already be stored.
func CheckRoom(dir string, list []Wanted) error {
	available, err := disk.Free(dir)
	if err != nil {
		return err
	}
	return checkRoom(dir, list, available)
}

// checkRoom is CheckRoom with the number of free bytes.
func checkRoom(dir string, list []Wanted, available int64) error {
	var need int64
	for _, w := range list {
		size := max(w.Size, 0)
		if st, err := os.Stat(partPath(w.Base)); err == nil {
			size = max(0, size-disk.Allocated(st))
		}
		need += size
	}
	if need > 0 && need+spare > available {
		return fmt.Errorf("%s has %d MiB free; the download needs %d MiB: free some room, or set SANDWICH_MODELS to "+
			"a folder on another disk", dir, available>>20, (need+spare)>>20)
	}
	return nil
}
