package remote

import (
	"cmp"
	"fmt"
	"strings"

	"parley/assembly"
)

// Text returns a message for an agent that gets no files: its texts and the names of its
// files, each on a line of its own.
func Text(m assembly.Message) string {
	var lines []string
	for _, p := range m.Parts {
		if p.File != nil {
			lines = append(lines, Describe(*p.File))
		} else {
			lines = append(lines, p.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// Describe names a file whose content the model does not get.
func Describe(file assembly.File) string {
	parts := []string{"file: " + cmp.Or(Plain(file.Name, 120), "unnamed")}
	if kind := Plain(file.MimeType, 120); kind != "" {
		parts = append(parts, kind)
	}
	if file.Size > 0 {
		parts = append(parts, size(file.Size))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// size formats a number of bytes for a reader, in powers of a thousand.
func size(bytes int64) string {
	value := float64(bytes)
	for _, unit := range []string{"B", "kB", "MB"} {
		if value < 999.5 {
			return fmt.Sprintf("%.0f %s", value, unit)
		}
		value /= 1000
	}
	return fmt.Sprintf("%.0f GB", value)
}
