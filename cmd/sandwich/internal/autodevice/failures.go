package autodevice

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sandwich/runtime/device"
)

// retryAfter is the time for which a driver that crashed or hung is not loaded again.
const retryAfter = 24 * time.Hour

// Failures remembers drivers and devices that were lost when they were opened, so that not each
// start of the program waits for them. The zero value remembers nothing. It is not safe for
// concurrent use; if two processes fail at the same time, the later record replaces the earlier.
type Failures struct {
	path, build string
	now         func() time.Time
}

// failure is a record of the file.
type failure struct {
	Build  string    `json:"build"` // of the program that failed
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// OpenFailures returns the failures that a build of this program stored in a folder, "" for none.
func OpenFailures(folder, build string) Failures {
	if folder == "" {
		return Failures{}
	}
	return Failures{filepath.Join(folder, "device-failures.json"), build, time.Now}
}

// recent returns why a driver or a device is not tried again, or nil.
func (f Failures) recent(id string) error {
	r, ok := f.read()[id]
	if !ok || r.Build != f.build {
		return nil
	}
	if age := f.now().Sub(r.At); age < 0 || age >= retryAfter {
		return nil
	}
	return fmt.Errorf("it failed at %s (%s); auto tries it again after %.0f hours or `sandwich doctor devices`",
		r.At.Local().Format(time.DateTime), r.Reason, retryAfter.Hours())
}

// Add records the failure of a driver or a device if the error says that it is lost or that it
// computed other results than the cores, and reports whether it did.
func (f Failures) Add(id string, err error) bool {
	_, wrong := errors.AsType[*device.Mismatch](err)
	if f.path == "" || !wrong && !errors.Is(err, device.ErrLost) {
		return false
	}
	all := f.read()
	all[id] = failure{f.build, f.now(), err.Error()}
	data, err := json.Marshal(all)
	if err != nil || os.MkdirAll(filepath.Dir(f.path), 0o755) != nil {
		return false
	}
	return os.WriteFile(f.path, data, 0o644) == nil
}

// Forget removes all records.
func (f Failures) Forget() {
	if f.path != "" {
		_ = os.Remove(f.path) // what remains expires
	}
}

// maxFile limits the size of the file.
const maxFile = 1 << 20

// read returns the records, none if the file is absent or damaged.
func (f Failures) read() map[string]failure {
	all := map[string]failure{}
	if f.path == "" {
		return all
	}
	if info, err := os.Stat(f.path); err != nil || info.Size() > maxFile {
		return all
	}
	data, err := os.ReadFile(f.path)
	if err != nil || json.Unmarshal(data, &all) != nil || all == nil {
		return map[string]failure{}
	}
	return all
}
