package commands

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/config"
)

// TestLogFormats logs one line in each format to a file, which is no terminal.
func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		"json": `"msg":"hello","wait_ms":1669.39}`, "auto": `"msg":"hello","wait_ms":1669.39}`, "text": `msg=hello wait=1.66939s`, "tint": "hello \x1b[2mwait=\x1b[0m\"1.7 s\"",
	} {
		file, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		newLogger(format, file, nil).Info("hello", "wait", 1669390*time.Microsecond)
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

// TestALoggerTakesOtherSettings proves that this holds for its children, which keep their attributes
// and groups.
func TestALoggerTakesOtherSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, apply := liveLogger(file, config.Log{Level: "info", Format: "json"})
	child := log.With("a", 1).WithGroup("g")
	child.Debug("too low")
	child.Info("first", "n", 1)
	apply(config.Log{Level: "debug", Format: "text"})
	child.Debug("second", "n", 2)
	written, err := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	if err != nil || len(lines) != 2 || !strings.HasSuffix(lines[0], `"msg":"first","a":1,"g":{"n":1}}`) || !strings.HasSuffix(lines[1], "msg=second a=1 g.n=2") {
		t.Errorf("%q, %v", lines, err)
	}
}
