// Command release builds everything of a release in bin/release: for each architecture a tarball, a
// Debian package, a container image and a bill of materials, and checksums of all. Equal sources
// give equal bytes. The Makefile runs it: make release.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	b := builder{info: readInfo}
	var epoch int64
	var archs string
	fs := flag.NewFlagSet("release", flag.ExitOnError)
	fs.StringVar(&b.version, "version", "", "version without v, such as 1.2.3")
	fs.StringVar(&b.commit, "commit", "unknown", "commit that the program reports")
	fs.Int64Var(&epoch, "epoch", 0, "time of all files in seconds since 1970 (SOURCE_DATE_EPOCH)")
	fs.StringVar(&archs, "arch", "amd64,arm64", "architectures")
	fs.StringVar(&b.out, "o", "bin/release", "folder to write, which is replaced")
	fs.StringVar(&b.source, "source", ".", "root of the source tree")
	fs.BoolVar(&b.noDeb, "no-deb", false, "leave out the Debian packages")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if b.version == "" || strings.ContainsAny(b.version, "/ -_~") {
		return fmt.Errorf("-version %q is not a version; give one such as 1.2.3 or 1.2.3+4.gabc1234", b.version)
	}
	b.archs, b.when = strings.Split(archs, ","), time.Unix(epoch, 0).UTC()
	for _, p := range []*string{&b.out, &b.source} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	return b.release(ctx)
}
