// Package replay plays a recording as a platform: it reads recorded envelopes from files,
// answers lookups from the recording itself, and prints each envelope's result. It never
// calls a platform.
package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
)

// maxLine bounds a line of a recording, in bytes.
const maxLine = 16 << 20

// Line is one object of a recording.
type Line struct {
	// Directory is set for a directory line; the other fields are then empty.
	Directory *DirectoryLine
	// Err is the reason why the line contains no envelope. Such a line is a dead letter.
	Err       error
	Platform  event.Platform
	Workspace string // empty if the line names none
	Envelope  event.Envelope
}

// DirectoryLine contains the answers to an adapter's lookups on its platform.
type DirectoryLine struct {
	Users []struct {
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
		IsBot       bool   `json:"is_bot"`
	} `json:"users"`
	Channels []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		IsDM bool   `json:"is_dm"`
	} `json:"channels"`
	Self *struct {
		TeamID       string `json:"team_id"`
		EnterpriseID string `json:"enterprise_id"`
		UserID       string `json:"user_id"`
		BotID        string `json:"bot_id"`
		AppID        string `json:"app_id"`
		Address      string `json:"address"`
	} `json:"self"`
}

// Raw reports whether a file contains one raw payload, which does not name its platform.
func Raw(path string) bool { return !strings.HasSuffix(path, ".jsonl") }

// Read calls each for every object of a file. A .jsonl file is a recording; any other file
// contains one raw payload of the given platform. The platform of each line must be one of
// known. An error means that the file itself is unreadable, or is an error of each.
func Read(path string, platform event.Platform, known []string, each func(Line) error) error {
	if Raw(path) {
		if platform == "" {
			return fmt.Errorf("%s: contains one raw payload: name its platform with --platform (%s)", path, strings.Join(known, ", "))
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return each(Line{Platform: platform, Envelope: event.Envelope{Platform: platform, Transport: "replay", Body: body}})
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return readLines(file, path, platform, known, each)
}

func readLines(r io.Reader, path string, platform event.Platform, known []string, each func(Line) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		text, err := readLine(lines)
		line := Line{Err: err}
		switch text = bytes.TrimSpace(text); {
		case err == io.EOF:
			return nil
		case errors.Is(err, errTooLong):
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		case len(text) == 0:
			continue
		default:
			line = parse(text, platform, known)
		}
		if err := each(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
}

var errTooLong = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// readLine returns the next line. If that is too long, readLine skips it and fails with
// errTooLong. At the end of the file it fails with io.EOF.
func readLine(r *bufio.Reader) (line []byte, err error) {
	size := 0
	for {
		part, err := r.ReadSlice('\n')
		if size += len(part); size <= maxLine {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && (err != io.EOF || size == 0):
			return nil, err
		case size > maxLine:
			return nil, errTooLong
		}
		return line, nil
	}
}

// parse reads one line. It reports a fault in Line.Err, because the lines below it are still
// readable.
func parse(text []byte, platform event.Platform, known []string) Line {
	var wire struct {
		Directory  *DirectoryLine  `json:"directory"`
		Platform   event.Platform  `json:"platform"`
		Workspace  string          `json:"workspace"`
		Transport  string          `json:"transport"`
		ReceivedAt *time.Time      `json:"received_at"`
		Body       json.RawMessage `json:"body"`
	}
	if text[0] != '{' {
		return Line{Err: errors.New("the line is not a JSON object")}
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return Line{Err: fmt.Errorf("the line is not a recorded envelope: %w", err)}
	}
	if wire.Directory != nil {
		return Line{Directory: wire.Directory}
	}
	wire.Platform = cmp.Or(wire.Platform, platform)
	if !slices.Contains(known, string(wire.Platform)) {
		return Line{Err: fmt.Errorf("platform: is %q, must be one of %s", wire.Platform, strings.Join(known, ", "))}
	}
	if wire.Body == nil {
		return Line{Err: errors.New("body: is missing; it must contain the platform's raw payload")}
	}
	line := Line{Platform: wire.Platform, Workspace: wire.Workspace}
	line.Envelope = event.Envelope{Platform: wire.Platform, Transport: cmp.Or(wire.Transport, "replay"), Body: wire.Body}
	if wire.ReceivedAt != nil {
		line.Envelope.ReceivedAt = *wire.ReceivedAt
	}
	return line
}
