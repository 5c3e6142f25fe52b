package energy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// powercapDir is the folder of the RAPL zones below the root of a file system.
const powercapDir = "sys/class/powercap"

// errNoPackage is returned if the system has no energy counter of a processor.
var errNoPackage = errors.New("no RAPL zone of a processor package in /" + powercapDir +
	" (usual in virtual machines and containers)")

// maxZones limits the zones of a machine, and maxName the length of a name.
const (
	maxZones = 1024
	maxName  = 40
)

// zoneName matches the folder of a zone. The mmio zones show the same counters through another
// interface.
var zoneName = regexp.MustCompile(`^intel-rapl(-mmio)?(:[0-9]+)+$`)

// powercap returns the counters of the RAPL zones below a root.
func powercap(root fs.FS) []*part {
	entries, err := fs.ReadDir(root, powercapDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []*part{{source: Source{Name: "package", Domain: Package, Err: reason(err)}}}
	}
	var direct, mmio []string
	for _, e := range entries[:min(len(entries), maxZones)] {
		switch name := e.Name(); {
		case !zoneName.MatchString(name):
		case strings.HasPrefix(name, "intel-rapl-mmio"):
			mmio = append(mmio, name)
		default:
			direct = append(direct, name)
		}
	}
	if len(direct) == 0 {
		direct = mmio
	}
	var parts []*part
	for _, zone := range direct {
		parts = append(parts, newZone(root, zone))
	}
	if !slices.ContainsFunc(parts, func(p *part) bool { return p.source.Domain == Package }) {
		parts = append(parts, &part{source: Source{Name: "package", Domain: Package, Err: errNoPackage}})
	}
	return parts
}

// newZone returns the counter of a zone. The name of a zone within a package begins with that of
// the package.
func newZone(root fs.FS, zone string) *part {
	name := zoneLabel(root, zone)
	p := &part{source: Source{Name: name, Domain: domainOf(name), Method: methodRAPL}}
	if colon := strings.LastIndexByte(zone, ':'); strings.Count(zone, ":") > 1 {
		p.source.Name = zoneLabel(root, zone[:colon]) + "/" + name
		if p.source.Domain == Package {
			p.source.Domain = other // a package within a package would be counted twice
		}
	}
	dir := path.Join(powercapDir, zone)
	limit, err := readNumber(root, path.Join(dir, "max_energy_range_uj"))
	if err == nil {
		p.wrap = float64(limit) / 1e6
	}
	p.read = func() (float64, error) {
		v, err := readNumber(root, path.Join(dir, "energy_uj"))
		if err == nil && p.wrap > 0 && v > limit {
			return 0, fmt.Errorf("/%s/energy_uj is %d, above its range of %d", dir, v, limit)
		}
		return float64(v) / 1e6, err
	}
	return p
}

// zoneLabel returns the name that the kernel gives a zone, or that of its folder if the name cannot
// be read.
func zoneLabel(root fs.FS, zone string) string {
	return label(root, path.Join(powercapDir, zone, "name"), zone)
}

// domainOf returns the domain that a zone's name says.
func domainOf(name string) Domain {
	for _, d := range []Domain{Package, Core, Uncore, Memory, Platform} {
		if rest, ok := strings.CutPrefix(name, string(d)); ok && (rest == "" || rest[0] == '-') {
			return d
		}
	}
	return other
}

// label returns the text of a file if it is a short printable word, else instead.
func label(root fs.FS, file, instead string) string {
	text, err := readText(root, file)
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '/' }
	if err != nil || text == "" || len(text) > maxName || strings.ContainsFunc(text, odd) {
		return instead
	}
	return text
}

// readNumber reads a file with one decimal number that is not negative.
func readNumber(root fs.FS, file string) (uint64, error) {
	text, err := readText(root, file)
	if err != nil {
		return 0, reason(err)
	}
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("/%s has the invalid value %.20q", file, text)
	}
	return v, nil
}

// readText returns the text of a regular file of less than 64 bytes, without white space at its
// ends.
func readText(root fs.FS, file string) (string, error) {
	info, err := fs.Stat(root, file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("/%s is not a regular file", file)
	}
	f, err := root.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const limit = 64
	text, err := io.ReadAll(io.LimitReader(f, limit))
	if err == nil && len(text) == limit {
		err = fmt.Errorf("/%s has more than %d bytes", file, limit-1)
	}
	return strings.TrimSpace(string(text)), err
}

// reason returns an error whose text names the file and, if permission is missing, the remedy.
func reason(err error) error {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("no permission to read /%s: run as root, or let an administrator make it readable (%w)",
			at.Path, fs.ErrPermission)
	}
	return fmt.Errorf("cannot read /%s: %w", at.Path, at.Err)
}

// inOrder sorts parts by domain, then by name.
func inOrder(parts []*part) {
	slices.SortStableFunc(parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.source.Domain.order(), b.source.Domain.order()),
			cmp.Compare(a.source.Name, b.source.Name))
	})
}
