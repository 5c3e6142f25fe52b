package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/device/sim"
)

// simulated is a driver with simulated devices. The second one cannot be opened, and the third one
// reports an inexact class. The next three use the memory of the cores: imported, exported and by
// copies. The last one has little memory. Another one, which is not listed, computes nothing.
// --device auto considers only those whose indices SIMULATED_AUTO lists.
type simulated struct{}

func autoIndices() []string { return strings.Fields(os.Getenv("SIMULATED_AUTO")) }

func (simulated) Detect() error {
	if len(autoIndices()) == 0 {
		return errors.New("/dev has no simulated device")
	}
	return nil
}

func (simulated) List(context.Context) ([]device.Info, error) {
	one := sim.New(sim.Config{})
	defer one.Close()
	list := slices.Repeat([]device.Info{one.Info()}, 7)
	for i := range list {
		list[i].Software = !slices.Contains(autoIndices(), strconv.Itoa(i))
	}
	return list, nil
}

func (simulated) Open(_ context.Context, index int) (device.Device, error) {
	switch index {
	case 1:
		return nil, errors.New("the simulated device cannot be opened")
	case 2:
		return sim.New(sim.Config{Inexact: 1 << device.Division}), nil
	case 3:
		return sim.New(sim.Config{Unified: true, Sharing: device.Imported}), nil
	case 4:
		return sim.New(sim.Config{Unified: true, Sharing: device.Exported}), nil
	case 5:
		return sim.New(sim.Config{Unified: true}), nil
	case 6:
		return sim.New(sim.Config{MemoryBytes: 1 << 15}), nil
	case 8:
		instant := func(time.Duration, <-chan struct{}) error { return nil }
		return sim.New(sim.Config{Mode: sim.Timed, Sleep: instant}), nil
	}
	return sim.New(sharedMemory()), nil
}

// sharedMemory returns the configuration of a device whose memory of SIMULATED_MEMORY bytes
// processes share, each with a file of what it holds in SIMULATED_FOLDER.
func sharedMemory() (c sim.Config) {
	folder := os.Getenv("SIMULATED_FOLDER")
	if folder == "" {
		return c
	}
	c.MemoryBytes, _ = strconv.ParseUint(os.Getenv("SIMULATED_MEMORY"), 10, 64)
	own := filepath.Join(folder, strconv.Itoa(os.Getpid()))
	next := filepath.Join(folder, "next-"+filepath.Base(own))
	c.Holds = func(bytes uint64) { // readers see the number before or after
		if os.WriteFile(next, []byte(strconv.FormatUint(bytes, 10)), 0o644) == nil {
			_ = os.Rename(next, own)
		}
	}
	c.OtherBytes = func() (sum uint64) {
		files, _ := filepath.Glob(filepath.Join(folder, "[0-9]*"))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && file != own {
				n, _ := strconv.ParseUint(string(text), 10, 64)
				sum += n
			}
		}
		return sum
	}
	return c
}

// registerSimulated registers the driver sim if the environment asks for it.
func registerSimulated() {
	if os.Getenv("SIMULATED_DEVICES") != "" {
		device.Register("sim", simulated{})
	}
}

// storeRates is saveRates in the data folder of a script: mkrates ID=MULTIPLE[,INEXACT]...
func storeRates(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(saveRates(ts.Getenv("XDG_DATA_HOME"), args...))
}

// saveRates stores ceilings of 1 MFLOP/s and 1 MB/s of the cores, and rates of simulated devices as
// multiples of them, ID=MULTIPLE[,INEXACT], as if they had been measured. By these rates forwards
// take so long that none is measured to check the prediction.
func saveRates(data string, devices ...string) error {
	host, err := profiles.Live()
	if err != nil {
		return err
	}
	const rate = 1e6
	pus := host.UsablePUs().Count()
	for _, isa := range []string{"avx512", "avx2", "neon", "go"} {
		for _, typ := range []string{"f32", "int8", "bf16"} {
			host.Ceilings = append(host.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: isa, Type: typ,
				PUs: pus, Figure: profiles.Figure{Median: rate, N: 9}})
		}
	}
	host.Ceilings = append(host.Ceilings, profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: pus,
		Figure: profiles.Figure{Median: rate, N: 9}})
	one := sim.New(sim.Config{})
	defer one.Close()
	for _, arg := range devices {
		id, value, _ := strings.Cut(arg, "=")
		multiple, inexact, _ := strings.Cut(value, ",")
		n, err := strconv.ParseFloat(multiple, 64)
		if err != nil {
			return err
		}
		d := rates.Describe(id, build.ID(), one.Info())
		d.Inexact = strings.Fields(inexact)
		d.LaunchSeconds, d.StepSeconds, d.WriteBytesPerSecond, d.CopyBackBytesPerSecond = 1e-6, 1e-6, 1e10, 1e10
		for _, class := range []string{rates.Attention, rates.Rows, "product f32 f32", "product q8_0 int8"} {
			d.Classes = append(d.Classes, devrates.Class{Name: class, MemoryIntensity: 1, BytesPerSecond: n * rate,
				ComputeIntensity: 100, FLOPPerSecond: n * rate, LeastSeconds: 1e-9})
		}
		host.Devices = append(host.Devices, d)
	}
	dir := filepath.Join(data, "sandwich")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fingerprint := strings.TrimPrefix(host.Fingerprint(), "sha256:")[:16]
	return host.Save(filepath.Join(dir, "devices-"+fingerprint+".yaml"))
}
