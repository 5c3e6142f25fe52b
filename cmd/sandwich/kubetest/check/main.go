// Command check prints the reason if the tests on Kubernetes cannot run here. It needs no Kubernetes,
// whose build takes minutes.
package main

import (
	"fmt"

	"sandwich/cmd/sandwich/kubetest/node"
)

func main() {
	if why := node.Missing(); why != "" {
		fmt.Printf("skipped: the tests on Kubernetes (%s)\n", why)
	}
}
