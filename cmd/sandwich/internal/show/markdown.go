package show

import "strings"

// Markdown keeps names of plans and rows from being read as markup: a pull request may come
// from a stranger.
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

// MarkdownRow is a row of cells that this program wrote itself.
func MarkdownRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
