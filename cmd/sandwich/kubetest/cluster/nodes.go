package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandwich/cmd/sandwich/kubetest/node"
	"sandwich/cmd/sandwich/kubetest/sandbox"
)

func background() context.Context { return context.Background() }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// AddNode starts node i and returns when it is ready. The reserved CPUs are not given to pods
// exclusively.
func (c *Cluster) AddNode(i int, reservedCPUs string, images []string, labels map[string]string) error {
	n := &node.Node{Name: nodeName(i), Dir: c.path(nodeName(i)), Logs: c.path("logs"), Kube: c.kube,
		Certs: c.path("certs"), Images: images, Address: fmt.Sprintf("10.100.0.%d", 10+i), Gateway: gateway,
		Pods: fmt.Sprintf("10.101.%d.0/24", i), ReservedCPUs: reservedCPUs}
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return err
	}
	if err := sandbox.MakeCgroup(sandbox.Cgroup() + "/" + n.Name); err != nil {
		return err
	}
	d, err := node.Start(n)
	if d != nil {
		c.daemons = append(c.daemons, d)
	}
	if err != nil {
		return err
	}
	if err := c.Await(n.Name+" is ready", func() bool { return c.ready(n.Name) }); err != nil {
		return err
	}
	return c.label(n.Name, labels)
}

// ready reports whether a node is ready.
func (c *Cluster) ready(name string) bool {
	n, err := c.Client.CoreV1().Nodes().Get(background(), name, meta.GetOptions{})
	if err != nil {
		return false
	}
	for _, x := range n.Status.Conditions {
		if x.Type == core.NodeReady && x.Status == core.ConditionTrue {
			return true
		}
	}
	return false
}

// label adds labels to a node, as `kubectl label node` does.
func (c *Cluster) label(name string, labels map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	_, err = c.Client.CoreV1().Nodes().Patch(background(), name, types.MergePatchType, patch, meta.PatchOptions{})
	return err
}
