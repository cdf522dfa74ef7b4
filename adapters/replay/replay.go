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

	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// maxLine bounds a line of a recording, in bytes.
const maxLine = 16 << 20

// Line is one object of a recording.
type Line struct {
	Number int // in its file, from 1; 0 for a raw payload
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
	Users    map[string]adapters.User     // by id
	Channels map[string]event.ChannelType // of the channels that the line calls direct, by id
	// ChannelNames are the names of channels, by id.
	ChannelNames map[string]string
	// Topics are the topics of channels, by id.
	Topics map[string]string
	Self   *event.Self // nil if the line does not give it
}

// Raw reports whether a file contains one raw payload, which does not name its platform.
func Raw(path string) bool { return !strings.HasSuffix(path, ".jsonl") }

// Read calls each for every object of a file. A .jsonl file is a recording; any other file
// contains one raw payload of the given platform. The platform of each line must be one of
// known. An error means that the file itself is unreadable, or is an error of each.
func Read(path string, platform event.Platform, known []string, each func(Line) error) error {
	if Raw(path) {
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return each(Line{Platform: platform, Envelope: event.Envelope{Platform: platform, Transport: "replay", Body: body}})
	}
	return Lines(path, func(n int, text []byte, fault error) error {
		line := Line{Err: fault}
		if fault == nil {
			line = parse(text, platform, known)
		}
		line.Number = n
		if err := each(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		return nil
	})
}

// Lines calls each with the number and the text of every line of a file that is not blank. A line
// over 16 MiB has a fault and no text. An error means that the file is unreadable, or is an error
// of each.
func Lines(path string, each func(n int, text []byte, fault error) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 64<<10)
	for n := 1; ; n++ {
		text, err := readLine(lines)
		text = bytes.TrimSpace(text)
		switch {
		case err == io.EOF:
			return nil
		case err != nil && !errors.Is(err, errTooLong):
			return fmt.Errorf("%s: %w", path, err)
		case err == nil && len(text) == 0:
			continue
		}
		if err := each(n, text, err); err != nil {
			return err
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

// parse reads one line. It reports the faults of all its fields in Line.Err, because the lines
// below it are still readable. Keys match exactly.
func parse(text []byte, platform event.Platform, known []string) Line {
	if text[0] != '{' {
		return Line{Err: errors.New("the line is not a JSON object")}
	}
	f, err := jsonobject.Parse(text)
	if err != nil {
		return Line{Err: fmt.Errorf("the line is not a recorded envelope: %w", json.Unmarshal(text, new(json.RawMessage)))}
	}
	if f.Has("directory") {
		directory := readDirectory(f)
		if err := f.Err(); err != nil {
			return Line{Err: err}
		}
		return Line{Directory: directory}
	}
	line := Line{Platform: cmp.Or(event.Platform(f.Text("platform")), platform)}
	if f.Err() == nil && !slices.Contains(known, string(line.Platform)) {
		f.Fault("platform", fmt.Sprintf("is %q, must be one of %s", line.Platform, strings.Join(known, ", ")))
	}
	line.Workspace = f.Text("workspace")
	line.Envelope = event.Envelope{Platform: line.Platform, Transport: cmp.Or(f.Text("transport"), "replay"), Body: f.Raw("body")}
	f.Decode("received_at", "a time such as 2026-09-21T14:00:00Z", &line.Envelope.ReceivedAt)
	if !f.Has("body") {
		f.Fault("body", "is missing; it must contain the platform's raw payload")
	}
	line.Err = f.Err()
	return line
}

// readDirectory reads a directory line.
func readDirectory(f jsonobject.Fields) *DirectoryLine {
	line := &DirectoryLine{Users: map[string]adapters.User{}, Channels: map[string]event.ChannelType{}, ChannelNames: map[string]string{}, Topics: map[string]string{}}
	d, _ := f.Child("directory")
	for _, u := range d.Children("users") {
		id := u.Text("id")
		line.Users[id] = adapters.User{DisplayName: cmp.Or(u.Text("display_name"), id), IsBot: u.Flag("is_bot")} // a bot without a name is still a bot
	}
	for _, c := range d.Children("channels") {
		id, name := c.Text("id"), c.Text("name")
		if c.Flag("is_dm") {
			line.Channels[id] = event.ChannelDirect
		}
		if name != "" {
			line.ChannelNames[id] = name
		}
		if topic := c.Text("topic"); topic != "" {
			line.Topics[id] = topic
		}
	}
	if self, ok := d.Child("self"); ok {
		line.Self = &event.Self{
			TeamID: self.Text("team_id"), UserID: self.Text("user_id"), BotID: self.Text("bot_id"), AppID: self.Text("app_id"), Address: self.Text("address"),
		}
	}
	return line
}
