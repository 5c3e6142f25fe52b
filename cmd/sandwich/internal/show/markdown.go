package show

import "strings"

// Markdown escapes untrusted text, such as names of plans in a pull request, so that it is not
// read as markup.
func Markdown(s string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", "`", "\\`", "[", "\\[", "*", "\\*", "@",
		"@\u200b",
		"\n", " ").Replace(Printable(s))
}

// MarkdownLine returns a table row of untrusted cells, escaped.
func MarkdownLine(cells ...string) string {
	out := "|"
	for _, c := range cells {
		out += " " + Markdown(c) + " |"
	}
	return out
}

// MarkdownRow returns a table row of trusted cells.
func MarkdownRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
