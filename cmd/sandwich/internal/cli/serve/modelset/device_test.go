package modelset

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// simulated is a driver with one simulated device, which all models share.
type simulated struct{ *sim.Device }

func init() { device.Register("modelset", simulated{sim.New(sim.Config{})}) }

func (s simulated) List(context.Context) ([]device.Info, error) { return []device.Info{s.Info()}, nil }

func (s simulated) Open(context.Context, int) (device.Device, error) { return s, nil }

// Close leaves the device to the other models.
func (s simulated) Close() error { return nil }

// TestDevices checks that models that share a device and those on the cores give the answers of
// models on the cores, and that a line says which model uses the device.
func TestDevices(t *testing.T) {
	if raceEnabled {
		t.Skip("race builds interpret device programs slowly")
	}
	dir := models(t)
	answers := func(devices ...string) (out, lines string) {
		var mu sync.Mutex
		text := "models:\n"
		for i, m := range []string{"one", "other"}[:len(devices)] {
			text += "  - {name: " + m + ", model: llama-tiny.gguf, context: 64, device: \"" + devices[i] + "\"}\n"
		}
		o := options(t, catalogOf(t, dir, text))
		c := &cobra.Command{}
		o.Session.AddDevice(c)
		o.Session.Attention, o.Session.Compute = "f32", "int8"
		for _, d := range devices {
			if d != "none" {
				if err := c.ParseFlags([]string{"--device-phases", "prefill"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		o.Notice = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			lines += text + "\n"
		}
		s := open(t, o)
		h := handler(s)
		var all sync.WaitGroup
		said := make([]string, len(devices))
		for i, m := range s.models {
			all.Go(func() {
				said[i] = ask(t, h, "/v1/completions",
					`{"model":"`+m.of.Name+`","prompt":"once","max_tokens":4,"temperature":0}`)
			})
		}
		all.Wait()
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(said, "\n"), lines
	}
	want, lines := answers("none")
	if strings.Contains(lines, "modelset:0") || !strings.HasPrefix(want, "200 ") {
		t.Errorf("on the cores: %s\n%s", want, lines)
	}
	got, lines := answers("modelset:0", "modelset:0")
	if strings.ReplaceAll(got, "other", "one") != want+"\n"+want {
		t.Errorf("on the device %s, on the cores %s", got, want)
	}
	for _, name := range []string{"one", "other"} {
		if !strings.Contains(lines, name+": loaded; ") || strings.Count(lines, "; modelset:0 runs prefill\n") != 2 {
			t.Errorf("no line says that %s uses the device:\n%s", name, lines)
		}
	}
}
