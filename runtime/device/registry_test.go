package device

import (
	"context"
	"errors"
	"strings"
	"testing"
)

type testDriver struct {
	infos []Info
	err   error
}

func (d testDriver) List(context.Context) ([]Info, error) { return d.infos, d.err }

func (d testDriver) Open(_ context.Context, index int) (Device, error) {
	return nil, errors.New(d.infos[index].Name)
}

// TestRegistry checks ids of devices and the errors of ids that do not exist.
func TestRegistry(t *testing.T) {
	t.Cleanup(func() {
		delete(drivers, "testa")
		delete(drivers, "testb")
	})
	Register("testb", testDriver{infos: []Info{{Name: "first"}, {Name: "second"}}})
	Register("testa", testDriver{err: errors.New("no library")})
	var ids []string
	for _, f := range List(t.Context()) {
		ids = append(ids, f.ID)
		if (f.ID == "testa") != (f.Err != nil) {
			t.Errorf("%s: %v", f.ID, f.Err)
		}
	}
	if got := strings.Join(ids, " "); got != "testa testb:0 testb:1" {
		t.Errorf("listed %q", got)
	}
	for id, want := range map[string]string{
		"testb":    "device testb: first",
		"testb:1":  "device testb:1: second",
		"testb:x":  "invalid device",
		"testb:-1": "invalid device",
		"testc":    "there are drivers for: testa, testb",
		"":         "there are drivers for",
	} {
		if _, err := Open(t.Context(), id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, want %q", id, err, want)
		}
	}
	for _, name := range []string{"testa", "", "a:b"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Register(%q) did not panic", name)
				}
			}()
			Register(name, testDriver{})
		}()
	}
}

func TestExactness(t *testing.T) {
	for e, want := range map[Exactness]string{0: "none", AllExact: "all",
		Exactness(0).With(FMA).With(IntegerDot): "fma integer-dot"} {
		if e.String() != want {
			t.Errorf("%q, want %q", e, want)
		}
	}
	if !AllExact.Has(SubnormalFMA) || Exactness(0).With(Division).Has(FMA) {
		t.Error("Has")
	}
}
