package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogFormats logs one line in each format to a file, which is no terminal.
func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		"json": `"msg":"hello","n":1}`, "auto": `"msg":"hello","n":1}`, "text": `msg=hello n=1`, "tint": "hello \x1b[2mn=\x1b[0m1",
	} {
		file, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		newLogger(format, file, nil).Info("hello", "n", 1)
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		line, err := io.ReadAll(file)
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(line)), want) {
			t.Errorf("%s: %q, %v", format, line, err)
		}
		if format != "tint" && strings.ContainsRune(string(line), '\x1b') {
			t.Errorf("%s has colour codes: %q", format, line)
		}
		_ = file.Close()
	}
}
