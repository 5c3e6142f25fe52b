package document

// Formats maps formats of strings to expressions whose matches every reader accepts.
var Formats = map[string]string{
	"date":      "^" + dateText + "$",
	"time":      "^" + timeText + "$",
	"date-time": "^" + dateText + "T" + timeText + "$",
	"duration":  `^P(\d{1,4}W|\d{1,3}Y(\d{1,2}M(\d{1,2}D)?)?|\d{1,2}M(\d{1,2}D)?|\d{1,3}D(T\d{1,2}H)?|T\d{1,2}H(\d{1,2}M)?)$`,
	"email":     `^[a-z0-9]{1,16}([._+-][a-z0-9]{1,16}){0,2}@` + hostText + "$",
	"hostname":  "^" + hostText + "$",
	"ipv4":      `^` + octet + `(\.` + octet + `){3}$`,
	"ipv6":      `^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$`,
	"uri":       uriText,
	"regex":     `^[A-Za-z0-9 _-]{1,32}$`,
	"uuid":      `^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`,
}

func init() {
	for name, like := range map[string]string{"iri": "uri", "iri-reference": "uri", "uri-reference": "uri",
		"uri-template": "uri", "idn-email": "email", "idn-hostname": "hostname"} {
		Formats[name] = Formats[like]
	}
	const pointer = `(/[A-Za-z0-9_-]{1,24}){0,8}$`
	Formats["json-pointer"], Formats["relative-json-pointer"] = "^"+pointer, "^(0|[1-9][0-9]{0,2})"+pointer
}

const (
	uriText  = `^https?://` + hostText + `(/[A-Za-z0-9._~-]{1,24}){0,8}$`
	dateText = `[12]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))`
	timeText = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	hostText = labelText + `(\.` + labelText + `){1,3}`
	// A label has at most 63 characters, a name at most 253.
	labelText = `[a-z][a-z0-9]{1,14}(-[a-z0-9]{1,15}){0,2}`
	octet     = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
)

// WideFormats maps formats to expressions that match at least the strings that any reader accepts:
// a string that does not match is not of the format. Formats that are not listed (regex, references
// and international formats) may be any string.
var WideFormats = map[string]string{
	"date":                  `^\d{4}[0-9W-]{3,6}$`,
	"time":                  `^\d\d:\d\d:\d\d[0-9.,zZ:+-]*$`,
	"date-time":             `^\d{4}-\d\d-\d\d[^0-9W-]\d\d:`,
	"duration":              `^[+-]?[Pp][0-9A-Za-z.,]*$`,
	"email":                 `@`,
	"idn-email":             `@`,
	"hostname":              `^[A-Za-z0-9._-]*$`,
	"ipv4":                  `^\d+(\.\d+){3}$`,
	"ipv6":                  `^[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%|$)`,
	"uri":                   `^[A-Za-z][A-Za-z0-9+.-]*:`,
	"iri":                   `^[A-Za-z][A-Za-z0-9+.-]*:`,
	"uuid":                  `^([Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:)?\{?[0-9A-Fa-f-]{32,36}\}?$`,
	"json-pointer":          `^(/|$)`,
	"relative-json-pointer": `^\d`,
}

// Expression returns the expression of an entry of moreTexts, which is a string or {"format":
// NAME}.
func Expression(x *Value, formats map[string]string) string {
	if f := x.Get("format"); f != nil {
		return formats[f.Text]
	}
	if x.Kind != KindString {
		return ""
	}
	return x.Text
}
