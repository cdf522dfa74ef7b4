package a2a

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

// images returns the files of one message. A file of a type that the card does not name is only named in the text. A card that
// takes texts takes them as text parts, so no text file is sent.
func (r *run) images() *remote.Images {
	takes := func(kind string) bool {
		family, _, _ := strings.Cut(kind, "/")
		return kind != "text/plain" && slices.ContainsFunc(r.service.modes, func(mode string) bool {
			mode, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(mode)), ";")
			return mode == kind || mode == "*/*" || mode == family+"/*"
		})
	}
	return remote.NewFiles(r.agent.files, takes, remote.DefaultImageBytes, remote.DefaultImagesBytes)
}

// message returns the message of the run: the turn, or in a new context the window of the thread.
func (r *run) message(ctx context.Context, images *remote.Images) sendParams {
	messages := assembly.Plain(r.input.Messages)
	id := r.input.RequestID()
	var lines []string
	switch {
	case r.kept.Context != "":
		messages = r.current(messages)
	case r.agent.config.SystemPrompt != "":
		lines = append(lines, r.agent.config.SystemPrompt)
	}
	var files []any
	for _, m := range messages {
		if m.Role == assembly.RoleAssistant {
			m = m.Told()
		}
		for i, p := range m.Parts {
			if p.File == nil || m.Role != assembly.RoleUser {
				continue
			}
			if kind, mark, ok := images.Add(ctx, *p.File); ok {
				name := cmp.Or(remote.Plain(p.File.Name, maxName), "file")
				files = append(files, filePart{"file", file{Name: name, MimeType: kind, Bytes: mark}})
				m.Parts = slices.Clone(m.Parts)
				m.Parts[i] = assembly.Part{Text: remote.Describe(*p.File)}
			}
		}
		lines = append(lines, remote.Text(m))
	}
	params := sendParams{Message: message{
		Kind: "message", ID: id, Role: "user", ContextID: r.kept.Context,
		Parts:    append([]any{textPart{"text", strings.Join(lines, "\n\n")}}, files...),
		Metadata: r.metadata(),
	}}
	if resume := r.input.Resume; resume != nil && resume.Answered && resume.RunID == r.kept.Run {
		params.Message.TaskID = r.kept.Task
	}
	if r.kept.Run == r.input.RunID { // the messages of the run have changed since it was sent
		sum := sha256.Sum256([]byte(strings.Join(lines, "\n\n")))
		params.Message.ID += "-" + hex.EncodeToString(sum[:6])
	}
	if r.service.pushes.Load() && r.input.Push.URL != "" {
		params.Configuration.Push = &push{ID: r.input.RunID, URL: r.input.Push.URL, Token: r.input.Push.Token.Reveal()}
	}
	return params
}

// current returns the messages of the turn and the blocks about it.
func (r *run) current(messages []assembly.Message) []assembly.Message {
	begin := len(messages)
	if len(r.input.Said) > 0 {
		begin = slices.IndexFunc(messages, func(m assembly.Message) bool { return m.ID == r.input.Said[0].ID })
	}
	if begin < 0 {
		begin = len(messages)
	}
	for begin > 0 && messages[begin-1].Role != assembly.RoleAssistant {
		begin--
	}
	return messages[begin:]
}

// metadata returns the facts beside the messages, for services that look at them.
func (r *run) metadata() json.RawMessage {
	given := r.agent.config.Noted(r.input.Notes).Forward(assembly.Dispatched(json.RawMessage(`{}`), r.input.Said))
	if string(given) == "{}" {
		return nil
	}
	return given
}
