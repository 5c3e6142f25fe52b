package modelflags

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/device"
	"sandwich/runtime/engine"
	"sandwich/runtime/phase"
	"sandwich/runtime/session"
)

// Values of --device without an ID.
const (
	noDevice  = "none"
	anyDevice = "auto"
)

// AddDevice adds the flags of a device.
func (f *Flags) AddDevice(c *cobra.Command) {
	c.Flags().StringVar(&f.device, "device", noDevice, "device for phases that it runs faster than the cores: none, "+
		"auto "+
		"(the first usable one), or an ID listed by 'sandwich doctor devices', such as cuda:0")
	c.Flags().StringVar(&f.devicePhases, "device-phases", "auto", "phases that run on the device: auto (by "+
		"measurement), "+
		"prefill, decode or both")
}

// usesDevice reports whether forwards may run on a device.
func (f *Flags) usesDevice() bool { return f.device != "" && f.device != noDevice }

// phases returns the phases of --device-phases, nil for auto.
func (f *Flags) phases() ([]phase.Phase, error) {
	switch f.devicePhases {
	case "", "auto":
		return nil, nil
	case "prefill":
		return []phase.Phase{phase.Prefill}, nil
	case "decode":
		return []phase.Phase{phase.Decode}, nil
	case "both":
		return phase.All[:], nil
	}
	return nil, fmt.Errorf("--device-phases %s is unknown; give auto, prefill, decode or both",
		show.Clip(f.devicePhases, 20))
}

// openDevice opens the device of the flags for a session, which closes it.
func (f *Flags) openDevice(ctx context.Context, s *session.Session) error {
	phases, err := f.phases()
	if err != nil {
		return exit.Usage(err)
	}
	if !f.usesDevice() {
		return nil
	}
	f.Loading.At("opening the device", 0)
	id, dev, err := f.findDevice(ctx)
	if err != nil {
		return exit.Usage(err)
	}
	if dev == nil {
		show.Notice("--device auto: this host has no usable device; the cores run both phases")
		return nil
	}
	s.Accelerator = engine.DeviceOptions{Device: dev, Name: id, Phases: phases, Optional: f.device == anyDevice,
		Chose: func(t engine.DeviceTimes, phases []phase.Phase) {
			show.Notice(fmt.Sprintf("%s: %s; it runs %s", id, t, phaseList(phases)))
		},
		Refused: func(err error) { show.Notice(fmt.Sprintf("%s: %v", id, err)) },
		Lost:    func(err error) { show.Notice(fmt.Sprintf("%s: %v", id, err)) },
	}
	return nil
}

// findDevice opens the device that the flag names, or the first one that can be opened. It returns
// nil if auto finds none.
func (f *Flags) findDevice(ctx context.Context) (string, device.Device, error) {
	if f.device != anyDevice {
		dev, err := device.Open(ctx, f.device)
		if err != nil {
			return "", nil, fmt.Errorf("--device %s: %w; this host has: %s", show.Clip(f.device, 40), err,
				deviceList(device.List(ctx)))
		}
		return f.device, dev, nil
	}
	for _, found := range device.List(ctx) {
		if found.Err != nil {
			continue
		}
		if dev, err := device.Open(ctx, found.ID); err == nil {
			return found.ID, dev, nil
		}
	}
	return "", nil, nil
}

// deviceList lists the usable devices of this host.
func deviceList(all []device.Found) string {
	var ids []string
	for _, d := range all {
		if d.Err == nil {
			ids = append(ids, fmt.Sprintf("%s (%s)", d.ID, d.Info.Name))
		}
	}
	if len(ids) == 0 {
		return "no device"
	}
	return strings.Join(ids, ", ")
}

// phaseList names phases.
func phaseList(list []phase.Phase) string {
	if len(list) == 0 {
		return "neither phase"
	}
	var names []string
	for _, p := range list {
		names = append(names, p.String())
	}
	return strings.Join(names, " and ")
}
