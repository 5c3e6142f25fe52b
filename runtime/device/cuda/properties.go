package cuda

import (
	"fmt"
	"strings"

	"sandwich/microkernel/devgen/ptx"
	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

// properties describe a device.
type properties struct {
	handle     uint64
	name       string
	address    string // on the PCI bus
	version    uint32
	memory     uint64
	target     ptx.Target
	integrated bool
}

// Device attributes.
const (
	attributeIntegrated = 18
	attributeMajor      = 75
	attributeMinor      = 76
)

// read reads the properties of the device with an index.
func (l *library) read(index int) (*properties, error) {
	p := &properties{version: l.version}
	err := l.With(l.Main, func(f *hostcall.Frame) error {
		out, name := f.Alloc(8), f.Alloc(256)
		if err := l.call(f, "cuDeviceGet", out.Addr(), uint64(index)); err != nil {
			return err
		}
		p.handle = uint64(out.U32(0))
		if err := l.call(f, "cuDeviceGetName", name.Addr(), 255, p.handle); err != nil {
			return err
		}
		p.name = name.CString(0, 256)
		if err := l.call(f, "cuDeviceGetPCIBusId", name.Addr(), 32, p.handle); err != nil {
			return err
		}
		p.address = strings.ToLower(name.CString(0, 32))
		if err := l.call(f, "cuDeviceTotalMem_v2", out.Addr(), p.handle); err != nil {
			return err
		}
		p.memory = out.U64(0)
		var values [3]uint32
		for i, attribute := range []uint64{attributeIntegrated, attributeMajor, attributeMinor} {
			if err := l.call(f, "cuDeviceGetAttribute", out.Addr(), attribute, p.handle); err != nil {
				return err
			}
			values[i] = out.U32(0)
		}
		if values[1] > 99 || values[2] > 9 {
			return l.Lose(fmt.Errorf("invalid reply: compute capability %d.%d", values[1], values[2]))
		}
		p.integrated, p.target = values[0] != 0, ptx.Target(10*values[1]+values[2])
		return nil
	})
	return p, err
}

func (p *properties) info() device.Info {
	return device.Info{Name: p.name, API: "CUDA", Driver: versionText(p.version), Address: p.address,
		MemoryBytes: p.memory, Unified: p.integrated, MatrixUnit: p.target >= ptx.MatrixTarget, Lacks: p.lacks()}
}

// lacks returns what the device needs and does not have, or "".
func (p *properties) lacks() string {
	if p.target >= ptx.LeastTarget {
		return ""
	}
	return fmt.Sprintf("compute capability %d.%d (it has %d.%d)", ptx.LeastTarget/10, ptx.LeastTarget%10, p.target/10,
		p.target%10)
}
