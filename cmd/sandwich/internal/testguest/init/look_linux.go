package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/testguest"
)

// look reads from /proc where the pages of a process are and where its threads may run.
func look(pid int) (p testguest.Process, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	maps, err := os.ReadFile(filepath.Join(dir, "numa_maps"))
	if err != nil {
		return p, err
	}
	p.NumaMaps = string(maps)
	tasks, err := filepath.Glob(filepath.Join(dir, "task", "*"))
	if err != nil {
		return p, err
	}
	for _, path := range tasks {
		if t, err := task(path); err == nil { // threads may end meanwhile
			p.Tasks = append(p.Tasks, t)
		}
	}
	return p, nil
}

func task(dir string) (t testguest.Task, err error) {
	if t.ID, err = strconv.Atoi(filepath.Base(dir)); err != nil {
		return t, err
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Name":
			t.Name = value
		case "Cpus_allowed_list":
			t.Allowed = value
		case "Mems_allowed_list":
			t.Mems = value
		}
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return t, err
	}
	// Field 39 of the line, the 37th after the name, which is in parentheses and may contain
	// spaces.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 37 {
		return t, fmt.Errorf("%s/stat has %d fields", dir, len(fields))
	}
	t.CPU, err = strconv.Atoi(fields[36])
	return t, err
}
