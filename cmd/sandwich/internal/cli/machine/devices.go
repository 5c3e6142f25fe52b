package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/autodevice"
	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/datafolder"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/codecache"
	_ "sandwich/runtime/device/cuda"
	"sandwich/runtime/device/rates"
	devices "sandwich/runtime/device/report"
	_ "sandwich/runtime/device/vulkan"
)

// UseCompiledKernels lets drivers keep the kernels that they compile in the cache folder,
// $XDG_CACHE_HOME/sandwich/kernels, else ~/.cache/sandwich/kernels.
func UseCompiledKernels() {
	if codecache.Current() != nil {
		return
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return // kernels are compiled again by each process
	}
	store, err := codecache.Open(filepath.Join(dir, "sandwich", "kernels"))
	if err != nil {
		show.Notice(fmt.Sprintf("compiled kernels are not stored: %v", err))
		return
	}
	codecache.Use(store)
}

func newDoctorDevices() *cobra.Command {
	var host string
	var again bool
	c := &cobra.Command{
		Use:   "devices",
		Short: "List devices such as GPUs: memory, exactness and measured rates",
		Long: `List the devices that the Vulkan and CUDA drivers of this host offer. Each is opened, its arithmetic is compared with
Go's bit for bit, and its rates are measured; that takes a few seconds. Rates are stored in the data folder and measured
again if the driver, the device or this program changes, or with --measure. A driver that crashed or hung, which
--device auto avoids for a day, is tried again by this command and by later ones.

Drivers run in a child process, so that a crash of a driver does not end this program. --dump-host writes the executable
of that process and does nothing else.`,
		Example: "  sandwich doctor devices\n  sandwich doctor devices --format json\n" +
			"  sandwich doctor devices --dump-host host.elf && objdump -b binary -m i386:x86-64 -D host.elf",
		Args: flags.ExactArgs(0, ""),
	}
	format := flags.Format(c, "table", "json")
	c.Flags().StringVar(&host, "dump-host", "", "write the executable of the driver process to this file")
	c.Flags().BoolVar(&again, "measure", false, "measure the rates again")
	c.RunE = func(c *cobra.Command, _ []string) error {
		UseCompiledKernels()
		if c.Flags().Changed("dump-host") {
			if host == "" {
				return exit.Usage(errors.New("--dump-host needs the name of a file"))
			}
			program, err := devices.HostProgram()
			if err != nil {
				return exit.Usage(err)
			}
			return outfile.Write(c.Context(), host, func(w io.Writer) error {
				_, err := w.Write(program)
				return err
			})
		}
		store := DeviceRates()
		measure := func(ctx context.Context, id string, d device.Device) (devrates.Device, error) {
			return store.Of(ctx, id, d, again, rates.Usual()...)
		}
		all := devices.Devices(c.Context(), measure)
		if err := c.Context().Err(); err != nil {
			return err
		}
		DeviceFailures().Forget()
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), map[string]any{"devices": all})
		}
		return devices.Write(c.OutOrStdout(), all)
	}
	return c
}

// ListDevices lists the usable devices of this host, without rates. The result is not nil.
func ListDevices(ctx context.Context) []devrates.Device {
	list := []devrates.Device{}
	for _, d := range device.List(ctx) {
		if d.Err == nil {
			list = append(list, devrates.Device{ID: d.ID, Name: d.Info.Name, API: d.Info.API, Driver: d.Info.Driver,
				MemoryBytes: int64(d.Info.MemoryBytes), Unified: d.Info.Unified})
		}
	}
	return list
}

// DeviceFailures returns the failures of drivers that this program stored on this host.
func DeviceFailures() autodevice.Failures {
	folder, _ := datafolder.Path() // empty on error: failures are not stored
	return autodevice.OpenFailures(folder, build.ID())
}

// DeviceRates returns the store of device rates of this host and program, in the data folder.
func DeviceRates() *rates.Store {
	folder, _ := datafolder.Path() // empty on error: rates are measured each time
	return rates.NewStore(folder, build.ID())
}
