package schema

import (
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
	"sandwich/runtime/grammar/internal/schema/document"
)

// takenByReaders are strings of formats that some reader accepts: unusual ones of the official test
// suite of JSON Schema, and others that lenient readers accept.
var takenByReaders = map[string][]string{
	"date": {"1963-06-19", "0000-01-01", "2020-02-29", "20240101", "2024-W01-1", "2024-366"},
	"time": {"08:30:06Z", "23:59:60Z", "08:30:06.283185z", "08:30:06+00:20", "12:00:00,5Z", "08:30:06"},
	"date-time": {"1963-06-19T08:30:06.283185Z", "1998-12-31T23:59:60Z", "1963-06-19t08:30:06.283185z",
		"1990-12-31 15:59:50.123-08:00", "1985-04-12_23:20:50Z", "1937-01-01T12:00:27.87+00:20"},
	"duration": {"P4DT12H30M5S", "P4Y", "PT0S", "P1M", "PT36H", "P2W", "-P1D", "PT1.5S", "pt1h"},
	"email": {"joe.bloggs@example.com", "te~st@example.com", `"joe bloggs"@example.com`, "joe@[127.0.0.1]",
		"実例@実例.テスト", "a@[IPv6:::1]"},
	"hostname": {"www.example.com", "xn--4gbwdl.xn--wgbh1c", "1host", "host-name", "a.b.c.d.", "1.2.3.4", "localhost",
		"_dmarc.example.com"},
	"ipv4": {"192.168.0.1", "0.0.0.0", "087.10.0.1", "255.255.255.255"},
	"ipv6": {"::1", "::", "::abef", "1:d6::42", "1:2::192.168.0.1", "::ffff:192.168.0.1", "fe80::a%eth1", "A::B"},
	"uri": {"http://foo.bar/?baz=qux#quux", "urn:oasis:names:tc", "tel:+1-816-555-1212", "mailto:a@b.c",
		"ldap://[2001:db8::7]/c=GB", "ftp://ftp.is.co.za/rfc", "HTTP://A", "z39.50r://x"},
	"iri": {"http://ƒøø.ßår/?∂éœ=πîx", "http://[2001:0db8::7334]"},
	"uuid": {"2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
		"urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380", "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}",
		"2eb8aa08aa9811eab4aa73b441d16380"},
	"json-pointer":          {"", "/", "/foo/bar~0/baz~1/%a", "//"},
	"relative-json-pointer": {"1", "0/foo/bar", "2#", "120/foo"},
}

// TestWideFormats checks that the wide expression of a format matches all strings of its narrow
// expression and all strings that readers accept.
func TestWideFormats(t *testing.T) {
	for name, wide := range document.WideFormats {
		c := &compiler{Patterns: pattern.PatternsOf(automaton.NewBuilder(automaton.NewMeter(t.Context(), 0, 0)))}
		if document.Formats[name] == "" {
			t.Errorf("%s is not enforced", name)
			continue
		}
		ok, err := c.Inhabited("", pattern.Texts{Want: []string{document.Formats[name]}, Unwanted: []string{wide},
			Most: -1})
		if err != nil || ok {
			t.Errorf("%s: %s does not match all of %s (%v)", name, wide, document.Formats[name], err)
		}
		if list := takenByReaders[name]; len(list) == 0 && name != "idn-email" {
			t.Errorf("%s has no examples", name)
		}
		for _, x := range takenByReaders[name] {
			if !c.Matches(wide, x, true) {
				t.Errorf("%s: %s does not match %q", name, wide, x)
			}
		}
	}
}
