package runinput

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/assembly/lookalike"
)

// The first and the last lines of the blocks of text. Nothing inside a block can end it or begin a line.
const (
	toolsStart   = "<!-- TOOLS_START -->"
	toolsEnd     = "<!-- TOOLS_END -->"
	contextStart = "<!-- CONTEXT_START -->"
	contextEnd   = "<!-- CONTEXT_END -->"
)

// ToolsPrompt returns the block of text that describes tools to an agent; empty for no tools.
func ToolsPrompt(tools []Tool) (string, error) {
	if len(tools) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString(toolsStart + "\n")
	for _, t := range tools {
		schema, err := oneLineJSON(t.Parameters)
		if err != nil {
			return "", fmt.Errorf("tool %q: parameters: %w", oneLine(t.Name), err)
		}
		fmt.Fprintf(&b, "- %s: %s\n  - args_schema: %s\n", oneLine(t.Name), oneLine(t.Description), schema)
	}
	b.WriteString("Note: tool arguments must strictly match args_schema.\n" + toolsEnd)
	return b.String(), nil
}

// FactsPrompt returns the block of text with the client's context, state and forwarded properties; empty if all
// of them are empty. Each has a line.
func (r *Rest) FactsPrompt() (string, error) {
	var facts []Context
	if err := json.Unmarshal(Or(r.Context, `[]`), &facts); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&b, "- %s: %s\n", oneLine(f.Description), oneLine(f.Value))
	}
	for _, f := range []struct {
		name  string
		value json.RawMessage
	}{{"state", r.State}, {"forwardedProps", r.ForwardedProps}} {
		if isEmpty(f.value) {
			continue
		}
		line, err := oneLineJSON(f.value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		fmt.Fprintf(&b, "- %s: %s\n", f.name, line)
	}
	if b.Len() == 0 {
		return "", nil
	}
	return contextStart + "\n" + b.String() + contextEnd, nil
}

// isEmpty reports whether a value is absent, null, or empty.
func isEmpty(value json.RawMessage) bool {
	var plain bytes.Buffer
	return json.Compact(&plain, value) != nil || slices.Contains([]string{"", "null", "{}", "[]", `""`}, plain.String())
}

// closing and opening match the marks of comments, also those that only HTML readers know.
var (
	closing = regexp.MustCompile(`(--!?)>`)
	opening = regexp.MustCompile(`<(!|\?)`)
)

// oneLine replaces line breaks by spaces, and breaks the marks of comments and their look-alikes.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, lookalike.IsLineEnd), " ")
	if seen := lookalike.Seen(text); seen != text && isMark(seen) {
		text = seen
	}
	return opening.ReplaceAllString(closing.ReplaceAllString(text, "$1 >"), "< $1")
}

func isMark(text string) bool { return closing.MatchString(text) || opening.MatchString(text) }

// oneLineJSON returns JSON on one line that contains no mark of a comment: it escapes the signs of a mark,
// their look-alikes and line ends, which only texts contain.
func oneLineJSON(value json.RawMessage) (string, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return "", err
	}
	line := compact.String()
	escapes := isMark(lookalike.Seen(line))
	var b strings.Builder
	for _, r := range line {
		like := lookalike.Rune(r)
		switch {
		case lookalike.IsLineEnd(r), escapes && (like == '<' || like == '>'):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), nil
}
