// Package autodevice chooses the device of --device auto: of those that compute exactly, the one
// with which a request is predicted to be the fastest, or none if the cores are faster. Drivers are
// loaded only on hosts that may have a device, and devices are opened only if they may be used or
// their rates were not measured yet.
package autodevice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
)

// Prediction is what the rates of a device predict for a model.
type Prediction struct {
	Uses  bool          // the device shortens the request
	Takes time.Duration // the request with the device
	Text  string
}

// Options configures [Choose].
type Options struct {
	Rounding bool // permits devices that are not exact
	// Stored returns the measured rates of a device that is not open, nil if there are none.
	Stored func(id string, info device.Info) *devrates.Device
	// Measure returns the rates of an open device.
	Measure func(ctx context.Context, id string, d device.Device) (devrates.Device, error)
	// Predict predicts the request by the rates of a device.
	Predict func(id string, r *devrates.Device) (Prediction, error)
	// Reject returns why a device is not considered, "" if it is. nil rejects none.
	Reject   func(info device.Info) string
	Failures Failures
	// Opening is called before a device is opened.
	Opening func()
	// Unused is called with a driver without a device, or with a device that is not used, and the
	// reason.
	Unused func(id, why string)
	// Failed is called with a driver or a device that failed.
	Failed func(id string, err error)
}

// Choice is a device for --device auto.
type Choice struct {
	ID     string
	Device device.Device // open; the caller closes it
	Text   string        // why the device was chosen
}

// candidate is a device that would shorten the request.
type candidate struct {
	id     string
	device device.Device // nil: not open
	Prediction
}

// Choose returns the device to use, or nil for the cores alone or if ctx has ended. Equal devices
// are ordered as they are listed.
func Choose(ctx context.Context, o Options) *Choice {
	var list []*candidate
	seen := map[string]string{} // usable devices by PCI address
	for _, f := range device.Detect(ctx, o.Failures.recent) {
		if f.Err != nil {
			o.absent(f)
			continue
		}
		if why := o.unusable(f, seen); why != "" {
			o.Unused(f.ID, why)
			continue
		}
		if c := o.consider(ctx, f, seen); c != nil {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Compare(a.Takes, b.Takes) })
	for i, c := range list {
		if o.open(ctx, c) != nil || !o.exact(c) {
			continue
		}
		text := c.Text
		for _, slower := range list[i+1:] {
			slower.close()
			o.Unused(slower.id, fmt.Sprintf("%s is faster: the request takes %s there and %s here", c.id,
				round(c.Takes), round(slower.Takes)))
			text += fmt.Sprintf("; the request takes %s, on %s %s", round(c.Takes), slower.id, round(slower.Takes))
		}
		return &Choice{c.id, c.device, text}
	}
	return nil
}

// round shortens a duration for messages.
func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}

// absent reports a driver that lists no devices.
func (o *Options) absent(f device.Found) {
	if errors.Is(f.Err, device.ErrAbsent) || o.Failures.recent(f.ID) != nil {
		o.Unused(f.ID, f.Err.Error())
		return
	}
	o.failed(f.ID, f.Err)
}

// failed reports that a device failed, and records it if the device is lost. It ignores errors of a
// canceled context.
func (o *Options) failed(id string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if o.Failures.Add(id, err) {
		err = fmt.Errorf("%w; auto does not try it again for %.0f hours, `sandwich doctor devices` tests it", err,
			retryAfter.Hours())
	}
	o.Failed(id, err)
}

// unusable returns why a listed device need not be opened, or "".
func (o *Options) unusable(f device.Found, seen map[string]string) string {
	switch why := f.Info.NotAutomatic(); {
	case why != "":
		return why
	case f.Info.Address != "" && seen[f.Info.Address] != "":
		return "it is the same device as " + seen[f.Info.Address]
	}
	if err := o.Failures.recent(f.ID); err != nil {
		return err.Error()
	}
	if o.Reject != nil {
		return o.Reject(f.Info)
	}
	return ""
}

// consider returns a device if it shortens the request. It opens the device if its rates are not
// stored.
func (o *Options) consider(ctx context.Context, f device.Found, seen map[string]string) *candidate {
	c := &candidate{id: f.ID}
	rates := o.Stored(f.ID, f.Info)
	if rates == nil {
		if o.open(ctx, c) != nil {
			return nil
		}
		measured, err := o.Measure(ctx, f.ID, c.device)
		if err != nil {
			c.close()
			o.failed(f.ID, fmt.Errorf("its rates could not be measured: %w", err))
			return nil
		}
		rates = &measured
	}
	unused := func(why string) *candidate {
		c.close()
		o.Unused(f.ID, why)
		return nil
	}
	if why := device.InexactText(rates.Inexact); why != "" && !o.Rounding {
		return unused(why)
	}
	seen[f.Info.Address] = f.ID
	var err error
	if c.Prediction, err = o.Predict(f.ID, rates); err != nil {
		return unused("no prediction: " + err.Error())
	}
	if !c.Uses {
		return unused(c.Text)
	}
	return c
}

// open opens a candidate unless it is open. It reports why that fails.
func (o *Options) open(ctx context.Context, c *candidate) (err error) {
	if c.device != nil {
		return nil
	}
	o.Opening()
	if c.device, err = device.Open(ctx, c.id); err != nil {
		o.failed(c.id, err)
	}
	return err
}

// exact reports whether an open candidate may be used. It closes one that may not: its self-test
// differs from that of the stored rates.
func (o *Options) exact(c *candidate) bool {
	inexact := device.AllExact &^ c.device.Info().Exact
	if inexact == 0 || o.Rounding {
		return true
	}
	c.close()
	o.Unused(c.id, device.InexactText(inexact.Names()))
	return false
}

// close closes a candidate that is open.
func (c *candidate) close() {
	if c.device != nil {
		_ = c.device.Close() // its process ends with this one
	}
}
