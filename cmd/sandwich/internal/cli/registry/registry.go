// Package registry has what the verbs share that push to and pull from OCI registries and layouts.
package registry

import (
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/oci"
)

// Locations describes the syntax of a location, for help texts.
const Locations = `A location is oci:FOLDER:TAG, an OCI image layout, or HOST/NAME:TAG, a repository of a registry. The default tag is
latest; @sha256:... instead of :TAG names a digest. Credentials are those of ` + "`docker login`" + `. Connections to a registry use
TLS, except on a loopback address or with --plain-http. Only this host is contacted: if it redirects requests to another
host, as many registries do for blobs and tokens, --allow-host must name that host.`

// AddFlags adds the flags of the access to a location.
func AddFlags(c *cobra.Command, o *oci.Options, timeout time.Duration) {
	flags.Duration(c.Flags(), &o.Timeout, "timeout", timeout, "time limit of the whole transfer")
	c.Flags().BoolVar(&o.PlainHTTP, "plain-http", false, "connect to the registry without TLS")
	c.Flags().StringArrayVar(&o.Hosts, "allow-host", nil,
		"HOST or HOST:PORT that the registry may redirect requests to; may be repeated")
}

// Error gives an error the exit code of unusable input if the location does not have what was asked
// for. Other errors, such as a registry that does not answer or a full disk, keep the code of a
// failure.
func Error(err error) error {
	if errors.Is(err, oci.ErrRefused) || errors.Is(err, fs.ErrNotExist) {
		return exit.Usage(err)
	}
	return exit.With(exit.Failed, err)
}
