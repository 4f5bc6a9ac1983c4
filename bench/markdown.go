package bench

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the report for a comment on a pull request: what the terminal shows, as GitHub's tables.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", markdownText(r.Where()))
	for _, res := range r.Results {
		title := res.Scenario
		if res.Is(Partial) {
			title += " (partial)"
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", title, markdownText(res.Doc))
		if h := res.Headline(); h != res.Doc {
			fmt.Fprintf(&b, "\n%s\n", markdownText(h))
		}
		for _, n := range res.Notes() {
			fmt.Fprintf(&b, "\n> %s\n", markdownText(n))
		}
		for _, t := range res.Tables() {
			b.WriteString("\n")
			t.WriteMarkdown(&b)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("bench: cannot write the Markdown: %w", err)
	}
	return nil
}

// WriteMarkdown writes the table as GitHub's Markdown has them.
func (t Table) WriteMarkdown(b *strings.Builder) {
	if t.Title != "" {
		fmt.Fprintf(b, "%s\n\n", markdownText(t.Title))
	}
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			fmt.Fprintf(b, " %s |", markdownCell(c))
		}
		b.WriteString("\n")
	}
	line(t.Head)
	b.WriteString("|")
	for i := range t.Head {
		if t.IsText(i) {
			b.WriteString("---|")
		} else {
			b.WriteString("--:|")
		}
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		line(row)
	}
}

// markdownCell keeps the indentation of a row that belongs to the one above.
func markdownCell(s string) string {
	text := strings.TrimLeft(s, " ")
	return strings.Repeat("\u00a0", len(s)-len(text)) + markdownText(text)
}

// markdownText takes what servers say for text, not for mark-up, a table's next cell or a mention of somebody.
func markdownText(s string) string {
	return markdownEscapes.Replace(oneLine(s))
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", "&", "&amp;", "*", `\*`, "`", "\\`", "[", `\[`, "@", "@\u200b",
)
