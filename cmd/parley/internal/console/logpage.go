package console

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"parley/cmd/parley/internal/operator"
)

// logRows is the number of records on the page of the log.
const logRows = 200

// attr is an attribute of a record.
type attr struct{ Name, Value string }

// logLine is a record of the log.
type logLine struct {
	operator.Record
	Number int64 // of all records of the process, from 1
	Attrs  []attr
}

func logPage(s *operator.Service, r request) (string, any, error) {
	level := r.query("level")
	least := slog.LevelInfo
	if level == "" {
		level = "info"
	}
	if err := least.UnmarshalText([]byte(level)); err != nil {
		level = "info" // one that is none shows all
	}
	workspace, run, words := r.query("workspace"), r.query("run"), strings.TrimSpace(r.query("q"))
	lines := []logLine{}
	if s.Live != nil && s.Live.Log != nil {
		for number, record := range s.Live.Log.Newest(least) {
			if workspace != "" && record.Attrs["workspace"] != workspace || run != "" && record.Attrs["run"] != run {
				continue
			}
			line := logLine{Record: record, Number: number}
			text := record.Message
			for _, name := range slices.Sorted(maps.Keys(record.Attrs)) {
				line.Attrs = append(line.Attrs, attr{name, record.Attrs[name]})
				text += " " + name + "=" + record.Attrs[name]
			}
			if !strings.Contains(strings.ToLower(text), strings.ToLower(words)) {
				continue
			}
			if lines = append(lines, line); len(lines) == logRows {
				break
			}
		}
	}
	return "Log", struct {
		Records        []logLine
		Levels         []string
		Level          string
		Workspace, Run string
		Text           string
		Workspaces     []string
	}{lines, []string{"info", "warn", "error"}, level, workspace, run, words, filterOf(s, r).Workspaces}, nil
}
