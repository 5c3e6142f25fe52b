package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// prefix is the prefix of the names of cgroups and folders; the rest is the number of the process
// that made them.
const prefix = "sandwich-kube-"

// hierarchies returns the folders at which hierarchies of cgroups are mounted.
func hierarchies() (folders []string, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		after := slices.Index(fields, "-")
		if after < 5 || after+1 >= len(fields) {
			continue
		}
		if kind := fields[after+1]; kind == "cgroup" || kind == "cgroup2" {
			folders = append(folders, fields[4])
		}
	}
	return folders, nil
}

// lacking returns the cgroup controllers that the kubelet needs and that are not available.
func lacking() (names []string) {
	folders, err := hierarchies()
	if err != nil {
		return []string{err.Error()}
	}
	have := map[string]bool{}
	for _, dir := range folders {
		have[filepath.Base(dir)] = true
		for part := range strings.SplitSeq(filepath.Base(dir), ",") {
			have[part] = true
		}
		if text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers")); err == nil {
			have["cpuacct"] = true // part of cpu in cgroup v2
			for _, name := range strings.Fields(string(text)) {
				have[name] = true
			}
		}
	}
	for _, name := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids"} {
		if !have[name] {
			names = append(names, name)
		}
	}
	return names
}

// MakeCgroup makes a cgroup in all hierarchies, with the CPUs and memory nodes of its parent.
func MakeCgroup(name string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range folders {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // of v1; empty at first
			text, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
			if err != nil || filepath.Base(dir) != "cpuset" {
				continue
			}
			if err := os.WriteFile(filepath.Join(path, file), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinCgroup moves this process to a cgroup.
func joinCgroup(name string) error {
	folders, err := hierarchies()
	for _, dir := range folders {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name, "cgroup.procs"), []byte("0"), 0o644))
	}
	return err
}

// CgroupFile returns the content of a file of a cgroup. The controller selects the hierarchy where
// each has its own.
func CgroupFile(controller, cgroup, file string) (string, error) {
	folders, err := hierarchies()
	if err != nil {
		return "", err
	}
	for _, dir := range folders {
		if len(folders) > 1 && filepath.Base(dir) != controller {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, cgroup, file))
		return strings.TrimSpace(string(text)), err
	}
	return "", fmt.Errorf("no hierarchy of cgroups has the controller %s", controller)
}

// removeCgroup removes a cgroup, its processes having ended, and its descendants.
func removeCgroup(name string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range folders {
		root := filepath.Join(dir, name)
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			_, err := os.Stat(root)
			if err != nil {
				break
			}
			if removeTree(root); time.Now().After(end) {
				return fmt.Errorf("the cgroup %s still has processes", root)
			}
		}
	}
	return nil
}

// removeTree removes a folder of cgroups, the innermost first. Those with processes remain.
func removeTree(root string) {
	var folders []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, path := range slices.Backward(folders) {
		_ = os.Remove(path)
	}
}

// removeStale removes the cgroups and folders of earlier runs that were killed.
func removeStale() {
	folders, err := hierarchies()
	if err != nil {
		return
	}
	for _, path := range stale(os.TempDir()) {
		_ = os.RemoveAll(path)
	}
	for _, dir := range folders {
		for _, path := range stale(dir) {
			removeTree(path)
		}
	}
}

// stale returns the folders in dir that are named after processes that have ended.
func stale(dir string) (paths []string) {
	list, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return nil
	}
	for _, path := range list {
		if _, err := os.Stat("/proc/" + strings.TrimPrefix(filepath.Base(path), prefix)); err != nil {
			paths = append(paths, path)
		}
	}
	return paths
}
