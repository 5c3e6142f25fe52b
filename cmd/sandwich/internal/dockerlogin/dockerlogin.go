// Package dockerlogin uses the credentials of `docker login` in requests to OCI registries.
package dockerlogin

import (
	"context"
	"fmt"
	"net/http"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Client returns a client that adds the credentials of `docker login` to the requests of client. It
// reads them again for each request for credentials.
func Client(client *http.Client) *auth.Client {
	return &auth.Client{Client: client, Cache: auth.NewCache(), Credential: credential}
}

// credential returns the credentials of a host, empty if there are none.
func credential(ctx context.Context, host string) (auth.Credential, error) {
	known, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return auth.EmptyCredential, fmt.Errorf("the credentials of `docker login` cannot be read: %w", err)
	}
	return credentials.Credential(known)(ctx, host)
}
