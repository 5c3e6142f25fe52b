package hwloc_test

import (
	"strings"
	"testing"

	"sandwich/topotree/hwloc"
	"sandwich/topotree/internal/topotest"
)

func FuzzXML(f *testing.F) {
	f.Add(xmlHead + `<object type="Machine" cpuset="0xf"><object type="NUMANode" os_index="0" cpuset="0xf" local_memory="1024"/>` +
		`<object type="Package" os_index="0" cpuset="0xf"><object type="L3Cache" cpuset="0x3" cache_size="1024"><object type="Core" cpuset="0x1"><object type="PU" os_index="0" cpuset="0x1"/></object>` +
		`<object type="Core" cpuset="0x2"><object type="PU" os_index="1"/></object></object><object type="Group" subtype="Cluster" cpuset="0xc"><object type="PU" os_index="2"/><object type="PU" os_index="3"/></object></object></object>` +
		`<distances2 type="NUMANode" nbobjs="1" indexing="os"><indexes length="2">0 </indexes><u64values length="3">10 </u64values></distances2>` +
		`<cpukind cpuset="0x3"><info name="FrequencyMaxMHz" value="3000"/></cpukind><cpukind cpuset="0xc" forced_efficiency="0"/></topology>`)
	f.Add(`<topology><object type="Machine" cpuset="0x3" online_cpuset="0x1" complete_cpuset="0x7" allowed_cpuset="0x1"><distances nbobjs="2" relative_depth="1" latency_base="10.0"><latency value="1.0"/><latency value="2.1"/><latency value="2.1"/><latency value="1.0"/></distances>` +
		`<object type="NUMANode" os_index="0" cpuset="0x1"><object type="Cache" depth="2" cache_type="0" cpuset="0x1"><object type="PU" os_index="0"/></object></object><object type="NUMANode" os_index="4" cpuset="0x0"/></object></topology>`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := hwloc.ReadXML(strings.NewReader(text))
		topotest.CheckSound(t, m, err)
	})
}

func FuzzSynthetic(f *testing.F) {
	for _, text := range []string{
		"pack:2 numa:2(memory=64GiB) l3:4(size=16MiB) core:4 pu:2", "[numa] core:4", "pu:4(indexes=6,4,2,0)",
		"group:2 group:2 l2:1 core:2", "die:2 cluster:2 l1d:1 pu:3",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := hwloc.ReadSynthetic(text)
		if err != nil && strings.Contains(text, "\n") {
			return // the sentence quotes the input
		}
		topotest.CheckSound(t, m, err)
	})
}
