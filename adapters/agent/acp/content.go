package acp

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/ingest/event"
)

const (
	// maxFile bounds a file of a prompt, and maxFiles all of them together, in bytes.
	maxFile  = 8 << 20
	maxFiles = 20 << 20
)

// block is a content block of a prompt.
type block map[string]any

func said(text string) block { return block{"type": "text", "text": text} }

// blocks returns the prompt: the facts beside the messages and the messages since the last answer, which the session does not know. A new
// session also gets the system prompt and the thread's window.
func (r *run) blocks(ctx context.Context, isNew bool) (list []block, err error) {
	c, messages := r.agent.config, r.input.Messages
	last := 0
	for i, m := range messages {
		if m.Role == assembly.RoleAssistant {
			last = i + 1
		}
	}
	facts := c.Noted(r.input.Notes).Block()
	if isNew {
		facts = c.Prompt(r.input.Notes)
	}
	if facts != "" {
		list = append(list, said(facts))
	}
	if isNew && last > 0 {
		list = append(list, said("The conversation so far, each message a part of its own:"))
		for _, m := range messages[:last] {
			text := remote.Text(m)
			if m.Role == assembly.RoleAssistant {
				text = "Your answer was:\n" + quoted(text)
			}
			list = append(list, said(text))
		}
		list = append(list, said("What follows is new:"))
	}
	room := int64(maxFiles)
	for _, m := range messages[last:] {
		var lines []string
		for _, part := range m.Parts {
			if part.File == nil {
				lines = append(lines, part.Text)
				continue
			}
			given, size, err := r.file(ctx, *part.File, room)
			if err != nil {
				return nil, err
			}
			if given == nil {
				lines = append(lines, remote.Describe(*part.File))
				continue
			}
			if room -= size; len(lines) > 0 {
				list, lines = append(list, said(strings.Join(lines, "\n"))), nil
			}
			list = append(list, given)
		}
		if len(lines) > 0 {
			list = append(list, said(strings.Join(lines, "\n")))
		}
	}
	if len(list) == 0 {
		return nil, r.agent.client.Rejected("the turn has no message", "")
	}
	return list, nil
}

// quoted marks each line of a text: none of them can pass for a message of another author.
func quoted(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }

// file returns the block of a file: a picture or a resource if the program takes them, else a link to a copy. It is nil for a file without a
// copy, and for one that is too large.
func (r *run) file(ctx context.Context, file assembly.File, room int64) (block, int64, error) {
	if r.agent.files == nil || file.Path == "" || file.Size > min(room, maxFile) || file.Words != "" {
		return nil, 0, nil
	}
	most := min(room, maxFile)
	takes := r.info.AgentCapabilities.PromptCapabilities
	kind, _, isPicture := remote.CheckImage(ctx, r.agent.files, file, most)
	opened, err := r.agent.files.Open(ctx, file.Bucket, file.Path)
	if err != nil {
		return nil, 0, nil // the copy is gone or unreachable
	}
	defer opened.Close()
	content, err := io.ReadAll(io.LimitReader(opened, most+1))
	if err != nil || int64(len(content)) > most {
		return nil, 0, nil
	}
	size, name := int64(len(content)), cmp.Or(plain(file.Name, 120), "file")
	switch {
	case isPicture && takes.Image:
		return block{"type": "image", "mimeType": kind, "data": base64.StdEncoding.EncodeToString(content)}, size, nil
	case takes.EmbeddedContext:
		resource := map[string]any{"uri": "attachment:///" + url.PathEscape(name), "mimeType": file.MimeType}
		if strings.HasPrefix(file.MimeType, "text/") && utf8.Valid(content) {
			resource["text"] = event.Text(string(content))
		} else {
			resource["blob"] = base64.StdEncoding.EncodeToString(content)
		}
		return block{"type": "resource", "resource": resource}, size, nil
	}
	path, err := r.copyFile(name, content)
	if err != nil {
		return nil, 0, errors.New("copy a file for the agent's program: " + err.Error())
	}
	link := url.URL{Scheme: "file", Path: path}
	return block{"type": "resource_link", "uri": link.String(), "name": name, "mimeType": file.MimeType, "size": size}, size, nil
}

// copyFile writes a file where the program can read it, and returns its path. The folder is removed with the process.
func (p *process) copyFile(name string, content []byte) (path string, err error) {
	if p.files == nil {
		if p.files, err = newCopies(); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(p.files.dir, "")
	if err != nil {
		return "", err
	}
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator || r == 0 {
			return '_'
		}
		return r
	}, name)
	if slices.Contains([]string{".", ".."}, name) {
		name = "file"
	}
	path = filepath.Join(dir, name)
	return path, os.WriteFile(path, content, 0o600)
}
