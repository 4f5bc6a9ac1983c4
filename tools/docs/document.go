package main

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// document is what is checked of a Markdown file.
type document struct {
	blocks  []block
	links   []mention
	names   []mention // of files, in code spans
	anchors map[string]bool
}

type block struct {
	line           int
	language, text string
	closed         bool
}

type mention struct {
	line   int
	target string
}

var (
	codeSpan = regexp.MustCompile("`[^`]+`")
	link     = regexp.MustCompile(`\[[^\]]*\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)`)
	bare     = regexp.MustCompile(`https?://[^\s)>\]` + "`" + `"']+`)
	fileName = regexp.MustCompile("^`([\\w.-]+(?:/[\\w.-]+)+\\.(?:go|lua|md|json|txt|yml))`$")
)

// parse understands the Markdown of this repository: fences of three backticks at the line's beginning, headings with #, links in one line.
func parse(text string) document {
	d := document{anchors: map[string]bool{}}
	seen := map[string]int{}
	var open *block
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		if language, fence := strings.CutPrefix(line, "```"); fence {
			switch {
			case open == nil:
				d.blocks = append(d.blocks, block{line: number, language: language})
				open = &d.blocks[len(d.blocks)-1]
			default:
				open.closed, open = true, nil
			}
			continue
		}
		if open != nil {
			open.text += line + "\n"
			continue
		}
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			d.anchors[unique(seen, anchor(title))] = true
		}
		for _, span := range codeSpan.FindAllString(line, -1) {
			if m := fileName.FindStringSubmatch(span); m != nil {
				d.names = append(d.names, mention{number, m[1]})
			}
		}
		plain := codeSpan.ReplaceAllStringFunc(line, func(span string) string { return strings.Repeat("x", len(span)) })
		for _, m := range link.FindAllStringSubmatch(plain, -1) {
			d.links = append(d.links, mention{number, m[1]})
		}
		for _, address := range bare.FindAllString(link.ReplaceAllString(plain, ""), -1) {
			d.links = append(d.links, mention{number, strings.TrimRight(address, ".,;:")})
		}
	}
	return d
}

// anchor is what GitHub makes of a heading.
func anchor(title string) string {
	title = strings.NewReplacer("`", "", "*", "").Replace(title)
	title = link.ReplaceAllStringFunc(title, func(l string) string { return l[1:strings.IndexByte(l, ']')] })
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}

// unique numbers headings of one name.
func unique(seen map[string]int, name string) string {
	n := seen[name]
	seen[name]++
	if n == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(n)
}

// dedented is code without indentation and empty lines, as a README may have these otherwise.
func dedented(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// uncommented is the code of a .go file, dedented. Comments among statements stay, since blocks have them too; those that stand for nothing but
// documentation do not, since no compiler sees what they show.
func uncommented(source string) string {
	source = blockComment.ReplaceAllString(source, "")
	return "\n" + dedented(docComment.ReplaceAllString(source, "")) + "\n"
}

var (
	blockComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	// A comment at the line's beginning, before a declaration: never within a function.
	docComment = regexp.MustCompile(`(?m)^//.*\n`)
)
