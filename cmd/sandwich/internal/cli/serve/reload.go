package serve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/serve/modelset"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
)

// reloaded has the settings that SIGHUP reloads.
type reloaded struct {
	file    string // of the settings; "": none
	keyFile string
	verbose bool
}

// reloadAtHangUp reads the settings and the key file at each SIGHUP. If that fails, nothing
// changes.
func (d *listeners) reloadAtHangUp() {
	for range d.hangUps {
		d.notify.Reloading()
		text, err := d.reload()
		if err != nil {
			text = fmt.Sprintf("%v; nothing is changed", err)
		}
		show.Notice("SIGHUP: " + text)
		if d.isReady.Load() {
			d.notify.Ready(d.serving)
		}
	}
}

// reload applies the present settings and keys, and returns a description of them.
func (d *listeners) reload() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, err := d.reread()
	switch {
	case err != nil:
		return "", err
	case now.keyFile == "" && now.file == "" && d.sockets.Pair == nil && d.models == nil:
		return "", errors.New("there is no --api-key-file and no --config to reload")
	}
	if (now.keyFile == "") != (d.keyFile == "") {
		return "", errors.New("--api-key-file cannot be added or removed without a restart")
	}
	keys, err := readKeys(now.keyFile)
	if err != nil {
		return "", err
	}
	var loaded []string
	commitPair := func() {}
	if pair := d.sockets.Pair; pair != nil {
		if commitPair, err = pair.Prepare(); err != nil {
			return "", err
		}
		loaded = append(loaded, "the certificate")
	}
	if d.models != nil {
		models, err := d.models.Prepare()
		if err != nil {
			return "", err
		}
		loaded = append(loaded, models.Commit())
	}
	// Nothing fails from here on.
	commitPair()
	d.level.Set(levelOf(now.verbose))
	d.keyFile, d.keys = now.keyFile, keys
	d.setKeys()
	switch {
	case now.keyFile != "":
		loaded = append(loaded, fmt.Sprintf("%s from %s", message.Plural(len(keys), "key"), d.keyFile))
	case now.file != "":
		loaded = append(loaded, "the settings from "+now.file)
	}
	return "loaded " + strings.Join(loaded, " and "), nil
}

// setKeys makes the server accept the keys of the key file and those of models. d.mu is held.
func (d *listeners) setKeys() {
	keys := d.keys
	if d.models != nil {
		keys = append(slices.Clip(keys), d.models.Keys()...)
	}
	d.server.SetKeys(keys)
}

// serveModels makes the server ready for several models, which SIGHUP reloads.
func (d *listeners) serveModels(set *modelset.Set) {
	d.mu.Lock()
	d.models = set
	d.setKeys()
	d.mu.Unlock()
	d.server.ReadyFor(set.Router())
}
