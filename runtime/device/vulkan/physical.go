package vulkan

import (
	"errors"
	"fmt"
	"strings"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

// physical has the properties of a physical device.
type physical struct {
	handle         uint64
	name           string
	address        string // on the PCI bus; "" if the driver does not report it
	api, driver    uint32
	kind           uint32
	cacheID        []byte // identifies the code that the driver makes
	maxInvocations uint32 // of a workgroup
	maxShared      uint32 // bytes of a workgroup
	keepsSubnormal bool   // subnormal float32 can be kept
	float64        bool
	importsHost    bool // memory of the host can be imported
	exportsFD      bool // memory of the driver can be exported
	exportsDmaBuf  bool
	exports        uint32 // handle type of exported memory; 0: it cannot be exported
	reportsFree    bool   // the driver reports free memory
	reportsBus     bool   // the driver reports the address on the PCI bus
	types          []memoryType
	deviceMemory   uint64 // bytes of the device's heaps
	family         uint32 // of the queue
	missing        []string
}

type memoryType struct{ flags, heap uint32 }

// Flags of memory types and heaps.
const (
	deviceLocal  = 1
	hostVisible  = 2
	hostCoherent = 4
	hostCached   = 8
)

// Kinds of physical devices.
const (
	kindIntegrated = 1
	kindCPU        = 4
)

// Offsets in VkPhysicalDeviceProperties2, which begins with 16 bytes of type and next.
const (
	propertiesBytes  = 1024
	atAPI            = 16
	atDriver         = 20
	atKind           = 32
	atName           = 36
	atCacheID        = 16 + 276
	atLimits         = 16 + 296
	atMaxShared      = atLimits + 216
	atMaxInvocations = atLimits + 232
)

// Structure types.
const (
	typeFeatures2          = 1000059000
	typeFeatures11         = 49
	typeFeatures12         = 51
	typeFeatures13         = 53
	typeProperties2        = 1000059001
	typeFloatControls      = 1000197000
	atDenormPreserve32     = 40
	features, features12   = 55, 47
	features13, features11 = 15, 12
)

// feature is a boolean of one of the feature structures.
type feature struct {
	name  string
	table int // 0: VkPhysicalDeviceFeatures, 12 or 13: that version's structure
	index int
}

var (
	featureFloat64 = feature{"shaderFloat64", 0, 39}
	needed         = []feature{
		{"shaderInt64", 0, 40},
		{"timelineSemaphore", 12, 37},
		{"bufferDeviceAddress", 12, 38},
		{"shaderIntegerDotProduct", 13, 13},
	}
)

const importExtension = "VK_EXT_external_memory_host"

// read reads the properties of the device.
func (p *physical) read(f *hostcall.Frame, fs functions) error {
	controls := f.Struct(typeFloatControls, uint64(0), make([]uint32, 17))
	properties := f.Alloc(propertiesBytes)
	properties.PutU32(0, typeProperties2)
	properties.PutU64(8, controls.Addr())
	if err := fs.void(f, "vkGetPhysicalDeviceProperties2", p.handle, properties.Addr()); err != nil {
		return err
	}
	p.api, p.driver, p.kind = properties.U32(atAPI), properties.U32(atDriver), properties.U32(atKind)
	p.name = properties.CString(atName, 256)
	p.cacheID = properties.Copy(atLimits)[atCacheID : atCacheID+16]
	p.maxInvocations, p.maxShared = properties.U32(atMaxInvocations), properties.U32(atMaxShared)
	p.keepsSubnormal = controls.U32(atDenormPreserve32) != 0
	return errors.Join(p.readMemory(f, fs), p.readFamilies(f, fs), p.readExtensions(f, fs), p.readAddress(f, fs),
		p.readFeatures(f, fs), p.readExport(f, fs))
}

// readAddress reads the address on the PCI bus. It needs readExtensions.
func (p *physical) readAddress(f *hostcall.Frame, fs functions) error {
	const typeBusInfo, atBus = 1000212000, 16
	if !p.reportsBus {
		return nil
	}
	bus := f.Struct(typeBusInfo, uint64(0), make([]uint32, 4))
	properties := f.Alloc(propertiesBytes)
	properties.PutU32(0, typeProperties2)
	properties.PutU64(8, bus.Addr())
	if err := fs.void(f, "vkGetPhysicalDeviceProperties2", p.handle, properties.Addr()); err != nil {
		return err
	}
	p.address = fmt.Sprintf("%04x:%02x:%02x.%x", bus.U32(atBus), bus.U32(atBus+4), bus.U32(atBus+8), bus.U32(atBus+12))
	return nil
}

func (p *physical) readMemory(f *hostcall.Frame, fs functions) error {
	const types, heaps, atHeaps = 32, 16, 264
	m := f.Alloc(1024)
	if err := fs.void(f, "vkGetPhysicalDeviceMemoryProperties", p.handle, m.Addr()); err != nil {
		return err
	}
	for i := range min(m.U32(0), types) {
		p.types = append(p.types, memoryType{m.U32(int(4 + 8*i)), m.U32(int(8 + 8*i))})
	}
	for i := range min(m.U32(atHeaps-4), heaps) {
		if m.U32(int(atHeaps+16*i+8))&deviceLocal != 0 {
			p.deviceMemory += m.U64(int(atHeaps + 16*i))
		}
	}
	return nil
}

// free returns how many bytes of the device's heaps this process may still allocate, or 0 if the
// driver does not report it.
func (p *physical) free(f *hostcall.Frame, fs functions) (bytes uint64, err error) {
	const typeProperties2, typeBudget = 1000059006, 1000237000
	const heaps, atBudget, atUsage, atHeaps = 16, 16, 16 + 8*16, 16 + 264
	if !p.reportsFree {
		return 0, nil
	}
	budget := f.Struct(typeBudget, uint64(0), make([]uint32, 2*2*heaps))
	m := f.Alloc(1024)
	m.PutU32(0, typeProperties2)
	m.PutU64(8, budget.Addr())
	if err := fs.void(f, "vkGetPhysicalDeviceMemoryProperties2", p.handle, m.Addr()); err != nil {
		return 0, err
	}
	for i := range min(m.U32(atHeaps-4), heaps) {
		limit, used := budget.U64(int(atBudget+8*i)), budget.U64(int(atUsage+8*i))
		if m.U32(int(atHeaps+16*i+8))&deviceLocal != 0 && used < limit {
			bytes += limit - used
		}
	}
	return bytes, nil
}

// readFamilies chooses a queue family: one that computes, rather without graphics.
func (p *physical) readFamilies(f *hostcall.Frame, fs functions) error {
	const limit, bytes, graphics, compute = 32, 24, 1, 2
	count, list := f.Alloc(4), f.Alloc(limit*bytes)
	count.PutU32(0, limit)
	if err := fs.void(f, "vkGetPhysicalDeviceQueueFamilyProperties", p.handle, count.Addr(), list.Addr()); err != nil {
		return err
	}
	best := -1
	for i := range min(int(count.U32(0)), limit) {
		flags := list.U32(bytes * i)
		if flags&compute != 0 && (best < 0 || flags&graphics == 0 && list.U32(bytes*best)&graphics != 0) {
			best = i
		}
	}
	if best < 0 {
		p.missing = append(p.missing, "a compute queue")
	}
	p.family = uint32(max(best, 0))
	return nil
}

func (p *physical) readExtensions(f *hostcall.Frame, fs functions) error {
	const limit, bytes, nameBytes, incomplete = 1024, 260, 256, 5
	count, list := f.Alloc(4), f.Alloc(limit*bytes)
	count.PutU32(0, limit)
	err := fs.call(f, "vkEnumerateDeviceExtensionProperties", p.handle, 0, count.Addr(), list.Addr())
	if r, ok := errors.AsType[result](err); err != nil && !(ok && r.code == incomplete) {
		return err
	}
	for i := range min(int(count.U32(0)), limit) {
		name := list.CString(bytes*i, nameBytes)
		p.importsHost = p.importsHost || name == importExtension
		p.exportsFD = p.exportsFD || name == fdExtension
		p.exportsDmaBuf = p.exportsDmaBuf || name == dmaBufExtension
		p.reportsFree = p.reportsFree || name == "VK_EXT_memory_budget"
		p.reportsBus = p.reportsBus || name == "VK_EXT_pci_bus_info"
	}
	return nil
}

func (p *physical) readExport(f *hostcall.Frame, fs functions) (err error) {
	if p.exportsFD {
		p.exports, err = exportHandle(f, fs, p.handle, p.exportsDmaBuf)
	}
	return err
}

// sharing returns how Shared buffers are made.
func (p *physical) sharing() device.Sharing {
	switch {
	case p.importsHost:
		return device.Imported
	case p.exports != 0:
		return device.Exported
	}
	return device.NotShared
}

func (p *physical) readFeatures(f *hostcall.Frame, fs functions) error {
	if p.api < version13 {
		p.missing = append(p.missing, fmt.Sprintf("Vulkan 1.3 (it has %s)", version(p.api)))
		return nil
	}
	chain := newFeatures(f)
	if err := fs.void(f, "vkGetPhysicalDeviceFeatures2", p.handle, chain.first()); err != nil {
		return err
	}
	for _, x := range needed {
		if !chain.has(x) {
			p.missing = append(p.missing, x.name)
		}
	}
	p.float64 = chain.has(featureFloat64)
	return nil
}

// check returns which needed features the device lacks, or nil.
func (p *physical) check() error {
	if len(p.missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s lacks %s", p.name, strings.Join(p.missing, ", "))
}

func version(v uint32) string { return fmt.Sprintf("%d.%d.%d", v>>22, v>>12&1023, v&4095) }

func (p *physical) info() device.Info {
	return device.Info{Name: p.name, API: "Vulkan " + version(p.api), Driver: fmt.Sprintf("%#x", p.driver),
		Address:     p.address,
		MemoryBytes: p.deviceMemory, Unified: p.kind == kindIntegrated || p.kind == kindCPU, HostVisible: p.importsHost,
		Sharing: p.sharing(), Software: p.kind == kindCPU, Lacks: strings.Join(p.missing, ", ")}
}

// memoryType returns the first type of a set that has all the wanted flags, or -1.
func (p *physical) memoryType(set, want uint32) int {
	for i, t := range p.types {
		if set>>i&1 != 0 && t.flags&want == want {
			return i
		}
	}
	return -1
}

// featureChain is the chain of feature structures.
type featureChain map[int]hostcall.Block

func newFeatures(f *hostcall.Frame) featureChain {
	c := featureChain{}
	c[13] = f.Struct(typeFeatures13, uint64(0), make([]uint32, features13))
	c[12] = f.Struct(typeFeatures12, c[13], make([]uint32, features12))
	c[11] = f.Struct(typeFeatures11, c[12], make([]uint32, features11))
	c[0] = f.Struct(typeFeatures2, c[11], make([]uint32, features))
	return c
}

func (c featureChain) first() uint64 { return c[0].Addr() }

func (c featureChain) has(x feature) bool { return c[x.table].U32(16+4*x.index) != 0 }

func (c featureChain) enable(x feature) { c[x.table].PutU32(16+4*x.index, 1) }
