package occupancy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Folders returns the folders in which instances of this program may reserve PUs, in order of
// preference: the runtime folder of the user, then a folder per machine in the data folder. data is
// "" without a data folder.
func Folders(data string) []string {
	var out []string
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(runtime) {
		runtime = filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	}
	if st, err := os.Stat(runtime); err == nil && st.IsDir() {
		out = append(out, filepath.Join(runtime, "sandwich"))
	}
	if data != "" {
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		out = append(out, filepath.Join(data, "pus", strings.TrimSpace(string(boot))))
	}
	return out
}
