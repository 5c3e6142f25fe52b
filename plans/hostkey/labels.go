package hostkey

import (
	"fmt"
	"strconv"
	"strings"
)

// Labels of a plan in a registry and in an index. Their values describe the content of the plan and
// are not trusted: the key of the bundle decides.
const (
	labelPrefix   = "dev.sandwich."
	labelArch     = labelPrefix + "arch"
	labelCPU      = labelPrefix + "cpu-model"
	labelFeatures = labelPrefix + "features"
	labelTopology = labelPrefix + "topology"
	labelPUs      = labelPrefix + "pus"
	labelModel    = labelPrefix + "model-digest"
	labelName     = labelPrefix + "model"
	labelSubtree  = labelPrefix + "subtree"
	labelAllowed  = labelPrefix + "allowed"
	labelQuota    = labelPrefix + "quota"
)

// maxLabel is the maximum number of bytes of a label that ParseLabels accepts.
const maxLabel = 4096

// Labels returns the key as labels of an artifact.
func (k Key) Labels() map[string]string {
	return map[string]string{labelArch: k.Arch, labelCPU: k.CPUModel, labelFeatures: k.Features,
		labelTopology: k.Topology, labelPUs: strconv.Itoa(k.PUs), labelModel: k.Model, labelName: k.Name,
		labelSubtree: k.Subtree, labelAllowed: k.Allowed, labelQuota: strconv.Itoa(k.Quota)}
}

// ParseLabels reads a key from labels. Other labels are ignored.
func ParseLabels(labels map[string]string) (Key, error) {
	var k Key
	for _, f := range []struct {
		label string
		to    *string
	}{{labelArch, &k.Arch}, {labelCPU, &k.CPUModel}, {labelFeatures, &k.Features}, {labelTopology, &k.Topology},
		{labelModel, &k.Model}, {labelName, &k.Name}, {labelSubtree, &k.Subtree}, {labelAllowed, &k.Allowed}} {
		text, ok := labels[f.label]
		if !ok || len(text) > maxLabel {
			return k, fmt.Errorf("the label %s is missing or longer than %d bytes", f.label, maxLabel)
		}
		*f.to = strings.ToValidUTF8(text, "?")
	}
	for label, to := range map[string]*int{labelPUs: &k.PUs, labelQuota: &k.Quota} {
		n, err := strconv.Atoi(labels[label])
		if err != nil || n < 0 {
			return k, fmt.Errorf("the label %s is %.40q, not a number", label, labels[label])
		}
		*to = n
	}
	return k, nil
}
