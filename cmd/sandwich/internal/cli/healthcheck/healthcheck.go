// Package healthcheck has the verb health, which asks a running server whether it accepts requests.
package healthcheck

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
)

// NewHealth returns the verb health.
func NewHealth() *cobra.Command {
	var main, health []string
	var cert string
	var limit time.Duration
	c := &cobra.Command{
		Use:   "health [URL]",
		Short: "Ask a running server whether it accepts requests",
		Long: `Request /health of a server of this host, print its status and exit with 0 if the server accepts requests, else with 1:
also while it loads the model, while it finishes its last requests, and if it does not answer within --timeout. Container
engines and scripts use it as a health check; it needs no key.

Without a URL the server is found by the settings of serve: --health-listen if it is set, else the first --listen with an
address, over TLS if --tls-cert is set. The environment (SANDWICH_LISTEN) and the top of the file of settings set them for
both commands. A URL without a path gets /health. Certificates of servers of this host are not verified.`,
		Example: `  sandwich health
  sandwich health http://127.0.0.1:8081
  sandwich health unix:/run/sandwich/sandwich.sock
  SANDWICH_LISTEN=0.0.0.0:9000 sandwich health --timeout 2s`,
		Args: flags.AtMostArgs(1),
	}
	c.Flags().StringArrayVar(&main, "listen", []string{"127.0.0.1:8080"}, "address and port of the server, or "+
		"unix:PATH (may be repeated; the first with an address is asked)")
	c.Flags().StringArrayVar(&health, "health-listen", nil, "address and port of the server's listener for /health "+
		"(may be repeated)")
	c.Flags().StringVar(&cert, "tls-cert", "", "certificate of the server; if it is set, --listen addresses use TLS")
	flags.Duration(c.Flags(), &limit, "timeout", 3*time.Second, "time limit for the answer")
	c.RunE = func(c *cobra.Command, args []string) error {
		text := cmp.Or(address(health), address(main))
		if len(args) == 1 {
			text = args[0]
		}
		s, err := parse(text, cert != "" && address(health) == "" && len(args) == 0)
		if err != nil {
			return exit.Usage(err)
		}
		if limit <= 0 {
			return exit.Usage(fmt.Errorf("--timeout %s is out of range; give a time above 0", limit))
		}
		ctx, cancel := context.WithTimeout(c.Context(), limit)
		defer cancel()
		status, err := s.status(ctx)
		if err != nil {
			return explain(c.Context(), text, limit, err)
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), status)
		return err
	}
	return c
}

// explain returns the error of a request with the address and, after a timeout, the limit.
func explain(ctx context.Context, text string, limit time.Duration, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s; --timeout sets the limit", limit)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s: %w", show.Clip(text, 80), err)
}

// maxAnswer limits the answer in bytes that is read.
const maxAnswer = 64 << 10

// status requests /health. It returns the status of a server that accepts requests, and an error
// for any other answer.
func (s *server) status(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: s.loopback}, // nothing secret is sent
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if s.socket != "" {
				return new(net.Dialer).DialContext(ctx, "unix", s.socket)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}}}
	resp, err := client.Do(req)
	if err != nil {
		return "", cause(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", cause(err)
	}
	status := describe(body)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("not ready: %s (%s)", status, resp.Status)
	}
	return status, nil
}

// cause removes the URL, which explain adds as the user wrote it.
func cause(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// describe returns the status and, while a model loads, the stage and its progress.
func describe(body []byte) string {
	var answer struct {
		Status   string
		Stage    string
		Progress *float64
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status == "" {
		return "the answer is not that of a sandwich server"
	}
	text := answer.Status
	if answer.Stage != "" {
		text += ", " + answer.Stage
	}
	if answer.Progress != nil {
		text += fmt.Sprintf(", %.0f %%", 100**answer.Progress)
	}
	return show.Printable(show.Clip(text, 200))
}
