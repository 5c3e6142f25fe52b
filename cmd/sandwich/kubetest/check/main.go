// Command check fails and names the reason if the tests on Kubernetes cannot run here. It needs no
// Kubernetes, whose build takes minutes.
package main

import (
	"fmt"
	"os"

	"sandwich/cmd/sandwich/kubetest/node"
)

func main() {
	if why := node.Missing(); why != "" {
		fmt.Printf("skipped: the tests on Kubernetes (%s)\n", why)
		os.Exit(1)
	}
}
