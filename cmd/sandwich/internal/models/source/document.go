package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/refusal"
)

// maxDocument limits the documents that describe models.
const maxDocument = 32 << 20

// ErrNotFound is wrapped if a server does not have a model, or hides it without credentials.
var ErrNotFound = errors.New("not found")

// Document requests a JSON document and stores it in v. It returns the bytes and the header of the
// answer.
func Document(ctx context.Context, client fetch.Doer, address string, accept []string, v any) ([]byte, http.Header,
	error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	r.Header["Accept"] = accept
	resp, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	host := resp.Request.URL.Host
	if err := checkStatus(resp); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxDocument {
		return nil, nil, Refuse("%s sends more than %d bytes; it is not such a server", host, maxDocument)
	}
	if err := json.Unmarshal(data, v); err != nil {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		return nil, nil, Refuse("%s sends %.40q instead of JSON; check the host and the proxy, which may ask for a "+
			"login", host, kind)
	}
	return data, resp.Header, nil
}

func checkStatus(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	host := resp.Request.URL.Host
	text := fmt.Sprintf("%s answered %d %s", host, resp.StatusCode, http.StatusText(resp.StatusCode))
	if reason := refusal.Reason(resp); reason != "" {
		text += fmt.Sprintf(" and says %q", reason)
	}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
		return &missingError{text, resp.StatusCode}
	case http.StatusTooManyRequests:
		text += "; it limits the number of requests"
	}
	when := "later"
	if d := refusal.Wait(resp, time.Now()); d > 0 {
		when = "in " + d.Round(time.Second).String()
	}
	return fmt.Errorf("%s; try again %s", text, when)
}

// missingError reports a model that a server does not show.
type missingError struct {
	text string
	code int
}

func (e *missingError) Error() string { return e.text }

func (*missingError) Unwrap() error { return ErrNotFound }

// NeedsLogin reports whether an error says that a server has a model but does not show it without
// credentials, or with those that it got.
func NeedsLogin(err error) bool {
	var missing *missingError
	return errors.As(err, &missing) && missing.code == http.StatusForbidden
}

// Patient sends requests, and repeats those that a server refuses for a stated time.
type Patient struct {
	fetch.Doer
	Wait   func(ctx context.Context, d time.Duration) error // nil: fetch.Sleep
	Notice func(text string)                                // receives the time for which the client waits
}

// patience is the number of times that a request is repeated.
const patience = 3

// Do implements fetch.Doer for requests without a body.
func (p *Patient) Do(r *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		resp, err := p.Doer.Do(r)
		if err != nil || n == patience {
			return resp, err
		}
		d := refusal.Wait(resp, time.Now())
		if d == 0 || d > refusal.LongestWait {
			return resp, nil
		}
		_ = resp.Body.Close()
		p.Notice(fmt.Sprintf("%s limits the number of requests; waiting for %s", resp.Request.URL.Host,
			d.Round(time.Second)))
		wait := p.Wait
		if wait == nil {
			wait = fetch.Sleep
		}
		if err := wait(r.Context(), d); err != nil {
			return nil, err
		}
	}
}
