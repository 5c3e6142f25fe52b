// Command init is the first process of a guest. It does what testguest.SetupFile says, runs the
// steps of testguest.StepsFile, prints their results on the console, and switches the machine off.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandwich/cmd/sandwich/internal/testguest"
)

func main() {
	if err := work(); err != nil {
		fmt.Println("init:", err)
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func work() error {
	if err := setUp(); err != nil {
		return err
	}
	root, err := applySetup()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(testguest.StepsFile)
	if err != nil {
		return err
	}
	var steps []testguest.Step
	if err := json.Unmarshal(text, &steps); err != nil {
		return err
	}
	for i := range steps {
		line, err := json.Marshal(run(&steps[i], root))
		if err != nil {
			return err
		}
		// One write: nothing else may come in between.
		if _, err := os.Stdout.Write(fmt.Appendf(nil, "%s%s\n", testguest.Mark, line)); err != nil {
			return err
		}
	}
	return nil
}
