package hub

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/source"
)

// node is an entry of the tree of a repository.
type node struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size *int64 `json:"size"`
	LFS  *struct {
		SHA256 string `json:"oid"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

// maxPages limits the pages of a tree. A page has up to 1,000 files.
const maxPages = 1000

// tree returns the GGUF files of a commit from the pages of the hub's list of files. It returns nil
// if the hub has no such list.
func tree(ctx context.Context, client fetch.Doer, endpoint *url.URL, repo, commit string) ([]entry, error) {
	next := endpoint.JoinPath("api", "models", repo, "tree", commit)
	next.RawQuery = "recursive=true"
	var list []entry
	for range maxPages {
		var page []node
		_, header, err := source.Document(ctx, client, next.String(), []string{"application/json"}, &page)
		var refused *source.RefusedError
		if list == nil && (errors.Is(err, source.ErrNotFound) || errors.As(err, &refused)) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, n := range page {
			e := entry{path: n.Path, size: -1}
			if n.Type != "file" || !isModel(n.Path) {
				continue
			}
			if n.Size != nil {
				e.size = *n.Size
			}
			if n.LFS != nil {
				e.size, e.sha256 = n.LFS.Size, n.LFS.SHA256
			}
			list = append(list, e)
		}
		to := nextPage(header)
		if to == "" {
			return list, nil
		}
		u, err := next.Parse(to)
		if err != nil || u.Scheme != endpoint.Scheme || u.Host != endpoint.Host {
			return nil, source.Refuse("%s continues its list of files at %.100q, which is another host", endpoint.Host,
				to)
		}
		next = u
	}
	return nil, source.Refuse("the repository has more than %d pages of files", maxPages)
}

// nextPage returns the address of the next page in a header, or "" on the last page.
func nextPage(h http.Header) string {
	m := nextLink.FindStringSubmatch(strings.Join(h.Values("Link"), ", "))
	if m == nil {
		return ""
	}
	return m[1]
}

// nextLink matches the link to the next page, such as <https://HOST/...>; rel="next".
var nextLink = regexp.MustCompile(`<([^<>]*)>\s*;[^<]*\brel="?next\b`)
