package machine

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	_ "sandwich/runtime/device/cuda"
	devices "sandwich/runtime/device/report"
	_ "sandwich/runtime/device/vulkan"
)

func newDoctorDevices() *cobra.Command {
	var host string
	c := &cobra.Command{
		Use:   "devices",
		Short: "List devices such as GPUs: memory, exactness and measured rates",
		Long: `List the devices that the Vulkan and CUDA drivers of this host offer. Each is opened, its arithmetic is compared with
Go's bit for bit, and its rates are measured; that takes a few seconds. Drivers run in a child process, so that a
crash of a driver does not end this program. --dump-host writes the executable of that process and does nothing else.`,
		Example: "  sandwich doctor devices\n  sandwich doctor devices --format json\n" +
			"  sandwich doctor devices --dump-host host.elf && objdump -b binary -m i386:x86-64 -D host.elf",
		Args: flags.ExactArgs(0, ""),
	}
	format := flags.Format(c, "table", "json")
	c.Flags().StringVar(&host, "dump-host", "", "write the executable of the driver process to this file")
	c.RunE = func(c *cobra.Command, _ []string) error {
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
		all := devices.Devices(c.Context())
		if err := c.Context().Err(); err != nil {
			return err
		}
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
