package installed

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Vulkan returns nil if the host may have a Vulkan device other than the cores: the loader, the
// description of a driver that is not one for the cores, and a device file of a GPU.
func (h Host) Vulkan(loader string) error {
	if !h.Library(loader) {
		return fmt.Errorf("no Vulkan loader on this host: %s is not installed", loader)
	}
	drivers := h.drivers()
	gpus := slices.DeleteFunc(slices.Clone(drivers), onCores)
	switch {
	case len(drivers) == 0:
		return errors.New("no Vulkan driver on this host")
	case len(gpus) == 0:
		return errors.New("the Vulkan driver of this host computes on the cores")
	case !h.has(gpuFiles):
		return errors.New("a Vulkan driver is installed, but /dev has no GPU")
	}
	return nil
}

// onCores reports whether the description of a driver is one of Mesa's lavapipe or of SwiftShader.
func onCores(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "lvp_") || strings.Contains(name, "swiftshader")
}

// drivers returns the files that describe Vulkan drivers, found as the loader finds them. Where the
// environment names files or folders, these are returned, whether they exist or not.
func (h Host) drivers() (files []string) {
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		if value := h.env(name); value != "" {
			return filepath.SplitList(value)
		}
	}
	files = filepath.SplitList(h.env("VK_ADD_DRIVER_FILES"))
	home := h.env("HOME")
	folders := slices.Concat(
		[]string{cmp.Or(h.env("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))},
		filepath.SplitList(cmp.Or(h.env("XDG_CONFIG_DIRS"), "/etc/xdg")),
		[]string{"/usr/local/etc", "/etc"},
		[]string{cmp.Or(h.env("XDG_DATA_HOME"), filepath.Join(home, ".local/share"))},
		filepath.SplitList(cmp.Or(h.env("XDG_DATA_DIRS"), "/usr/local/share:/usr/share")))
	for _, dir := range folders {
		found, err := filepath.Glob(filepath.Join("/", h.Root, dir, "vulkan/icd.d/*.json"))
		if err == nil {
			files = append(files, found...)
		}
	}
	return files
}
