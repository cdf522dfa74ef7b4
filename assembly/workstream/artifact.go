package workstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// Files opens stored copies of files.
type Files interface {
	// Open returns a copy. Its caller closes it.
	Open(ctx context.Context, bucket, path string) (io.ReadCloser, error)
}

// Part is a part of a file that a workstream has made.
type Part struct {
	Path     string `json:"path"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size" jsonschema:"of the file, in bytes"`
	Content  string `json:"content,omitempty" jsonschema:"the text behind offset, at most 15,000 bytes"`
	Next     *int64 `json:"next,omitempty" jsonschema:"offset of the next part; missing if there is none"`
	Note     string `json:"note,omitempty" jsonschema:"why there is no content"`
}

// maxPart bounds the bytes of a part, so that its JSON, where quotes and ends of lines have two bytes, is within the 32 KiB of a tool's
// result.
const maxPart = 15_000

// errNoFile is the error of a path that is none of a file that the agent's workstreams have made.
var errNoFile = Fault{"path", "must be that of a file of a workstream, as its report names it: files/{launch_id}/{name}"}

// Read returns a part of a file that a workstream has made. The agent of a run reads the files of those workstreams alone that it has
// launched in the run's thread, and that the report of their end lists. The error is a Fault, or the store's.
func (s *Service) Read(ctx context.Context, run *runs.Run, path string, offset int64) (part Part, err error) {
	if offset < 0 {
		return part, Fault{"offset", "must be 0 or more"}
	}
	rest, ok := strings.CutPrefix(path, "files/")
	launch, _, nested := strings.Cut(rest, "/")
	if !ok || !nested {
		return part, errNoFile
	}
	child, err := s.childOf(ctx, run, launch)
	if errors.Is(err, storage.ErrNotFound) {
		return part, errNoFile
	}
	if err != nil {
		return part, err
	}
	all, err := s.Runs.Artifacts(ctx, child.Run)
	if err != nil {
		return part, err
	}
	for _, a := range all {
		if a.Path == path && a.Child != "" {
			return s.part(ctx, a, offset)
		}
	}
	return part, errNoFile
}

// part reads a part of a file. If the file is no text in UTF-8, the part has a note and no content.
func (s *Service) part(ctx context.Context, a runs.Artifact, offset int64) (Part, error) {
	part := Part{Path: a.Path, MimeType: a.File.MimeType, Size: a.File.Size}
	content, err := s.Files.Open(ctx, a.File.Copy.Bucket, a.File.Copy.Path)
	if err != nil {
		part.Note = "The file cannot be read at present."
		return part, ctx.Err()
	}
	defer func() { _ = content.Close() }() // it was only read
	read := make([]byte, maxPart+utf8.UTFMax)
	_, err = io.CopyN(io.Discard, content, offset)
	n := 0
	if err == nil {
		n, err = io.ReadFull(content, read)
	}
	switch {
	case errors.Is(err, io.EOF) && offset > 0:
		return part, Fault{"offset", fmt.Sprintf("must be less than the size of the file, which has %d bytes", a.File.Size)}
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		part.Note = "The file cannot be read at present."
		return part, ctx.Err()
	}
	text, more := read[:n], err == nil
	if more {
		end := maxPart
		for end > maxPart-utf8.UTFMax && !utf8.RuneStart(read[end]) {
			end--
		}
		text = text[:end]
	}
	if !utf8.Valid(text) || strings.ContainsFunc(string(text), isControl) {
		part.Note = "The file is no text in UTF-8, so there is no content. Its bytes are at the link that the list of the run's files has."
		return part, nil
	}
	if part.Content = string(text); more {
		part.Next = new(offset + int64(len(text)))
	}
	return part, nil
}

// isControl reports whether a character is none of a text.
func isControl(c rune) bool {
	return c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f' && c != 0x1b
}
