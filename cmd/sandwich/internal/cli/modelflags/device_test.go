package modelflags

import (
	"context"
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"sandwich/runtime/device"
)

// slowDriver is a driver whose device does not open before the user interrupts the program.
type slowDriver struct{ interrupt func() }

var slow slowDriver

func init() { device.Register("slow", &slow) }

func (d *slowDriver) List(context.Context) ([]device.Info, error) {
	return []device.Info{{Name: "slow", Exact: device.AllExact}}, nil
}

func (d *slowDriver) Open(ctx context.Context, _ int) (device.Device, error) {
	if ctx.Done() == nil {
		return nil, errors.New("the context of Open does not end")
	}
	d.interrupt()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestInterruptedWhileOpening checks that an interrupt ends the opening of a device, and that the
// program then does not go on without the device.
func TestInterruptedWhileOpening(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, id := range []string{"slow:0", "auto"} {
		t.Run(id, func(t *testing.T) {
			c := &cobra.Command{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			slow.interrupt = cancel
			c.SetContext(ctx)
			f := Flags{FirstPUs: true, Notice: func(line string) { t.Log(line) }}
			f.Add(c)
			f.AddDevice(c)
			if err := c.ParseFlags([]string{"--device", id, "--attention", "f32", "--compute", "int8"}); err != nil {
				t.Fatal(err)
			}
			s, err := f.Open()
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want %v", err, context.Canceled)
			}
		})
	}
}

// TestDeviceFlags checks flags of a device that have no effect.
func TestDeviceFlags(t *testing.T) {
	for _, x := range []struct {
		args []string
		ok   bool
	}{
		{[]string{"--device", "none", "--device-phases", "prefill"}, false},
		{[]string{"--device", "none", "--device-rounding"}, false},
		{[]string{"--device", "none", "--device-divide"}, false},
		{[]string{"--device", "none", "--device-static"}, false},
		{[]string{"--device-phases", "both", "--device-divide"}, false},
		{[]string{"--device-phases", "decode", "--device-divide"}, false},
		{[]string{"--device-phases", "decode", "--device-static"}, false},
		{[]string{"--device-ops", "most"}, false},
		{[]string{"--device-phases", "both", "--device-static"}, true},
		{[]string{"--device-phases", "prefill", "--device-divide", "--device-static"}, true},
		{[]string{"--device-divide", "--device-static", "--device-rounding"}, true},
		{[]string{"--device", "none"}, true},
	} {
		c, f := &cobra.Command{}, Flags{}
		f.Add(c)
		f.AddDevice(c)
		f.AddDeviceDispatch(c)
		if err := c.ParseFlags(x.args); err != nil {
			t.Fatal(err)
		}
		if err := f.Check(); (err == nil) != x.ok {
			t.Errorf("%v: %v", x.args, err)
		}
		if err := f.Of("", "", "").Check(); (err == nil) != x.ok && f.device != noDevice {
			t.Errorf("%v for one of several models: %v", x.args, err)
		}
	}
}
