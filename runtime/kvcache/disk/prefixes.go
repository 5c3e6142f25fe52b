package disk

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/runtime/kvcache"
)

// Prefix is a text whose blocks are stored: all blocks up to one that no stored block follows.
type Prefix struct {
	Name     Name // of its last block
	Model    string
	Identity [sha256.Size]byte
	Tokens   []int32
	Bytes    int64 // of its objects, some of which other prefixes share
	Used     time.Time
	Public   bool
	Portable bool
	Imported bool
	Pinned   bool     // all objects are pinned
	Objects  []Stored // in the order of their blocks
}

// Stored is an object with its description.
type Stored struct {
	Object
	Info
}

// chainKey identifies the blocks of a text in all stores.
type chainKey struct {
	identity [sha256.Size]byte
	key      kvcache.Key
}

// Prefixes lists the prefixes of the folder, those used last first. It reads the header of every
// object and leaves out objects that are damaged and those of a text whose beginning is missing.
func (s *Store) Prefixes() ([]Prefix, error) {
	objects, err := s.Objects()
	if err != nil {
		return nil, err
	}
	blocks, follows := map[chainKey][]Stored{}, map[chainKey]bool{}
	for _, o := range objects {
		info, err := s.Info(o.Name)
		if err != nil {
			continue
		}
		blocks[chainKey{info.Identity, info.Key}] = append(blocks[chainKey{info.Identity, info.Key}], Stored{o, info})
		follows[chainKey{info.Identity, info.Parent}] = true
	}
	var list []Prefix
	for k := range blocks {
		if follows[k] {
			continue
		}
		if p, ok := prefixOf(blocks, k); ok {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Prefix) int {
		return cmp.Or(b.Used.Compare(a.Used), slices.Compare(a.Name[:], b.Name[:]))
	})
	return list, nil
}

// prefixOf collects the blocks of the text that ends with the block of a key. It returns false if
// the beginning is missing, or if the headers do not number the blocks one after the other: they
// were not verified, and may name each other as parents.
func prefixOf(blocks map[chainKey][]Stored, last chainKey) (p Prefix, ok bool) {
	end := &blocks[last][0]
	for k, n := last, end.Block; n >= 0; n-- {
		here := blocks[k]
		if len(here) == 0 || here[0].Block != n {
			return p, false
		}
		p.Objects = append(p.Objects, here...)
		k.key = here[0].Parent
	}
	p.Name, p.Model, p.Identity, p.Pinned = end.Object.Name, end.Model, end.Identity, true
	p.Public, p.Portable = end.Public, end.Portable
	slices.SortFunc(p.Objects, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), strings.Compare(a.Store, b.Store))
	})
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Block*kvcache.BlockTokens == len(p.Tokens) {
			p.Tokens = append(p.Tokens, o.Info.Tokens...)
		}
		p.Bytes += o.Bytes
		p.Pinned = p.Pinned && o.Pinned
		p.Imported = p.Imported || o.Imported
		if o.Used.After(p.Used) {
			p.Used = o.Used
		}
	}
	return p, len(p.Tokens) == (end.Block+1)*kvcache.BlockTokens
}

// FindPrefix returns the prefix whose name begins with some digits.
func FindPrefix(list []Prefix, digits string) (*Prefix, error) {
	var found *Prefix
	for i := range list {
		if !strings.HasPrefix(list[i].Name.String(), strings.ToLower(digits)) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("several prefixes have names that begin with %.80q; give more digits", digits)
		}
		found = &list[i]
	}
	if found == nil || digits == "" {
		return nil, fmt.Errorf("the cache has no prefix %.80q; `sandwich cache ls` lists them", digits)
	}
	return found, nil
}

// Drop removes the objects of a prefix that no other prefix of the list has.
func (s *Store) Drop(p *Prefix, list []Prefix) (removed int, err error) {
	shared := map[Name]bool{}
	for i := range list {
		if list[i].Name == p.Name {
			continue
		}
		for j := range list[i].Objects {
			shared[list[i].Objects[j].Object.Name] = true
		}
	}
	for i := range p.Objects {
		if name := p.Objects[i].Object.Name; !shared[name] {
			err = errors.Join(err, s.Remove(name))
			removed++
		}
	}
	return removed, err
}
