package deliver

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"parley/adapters"
	"parley/adapters/markdown"
	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
)

// Locate finds the place of a message that a program injects. If the target is a channel whose threads are under
// messages, that is a new thread, and id makes its key. A conversation of a few people is one thread. Its errors are those of Speak.
func (o *Outbox) Locate(ctx context.Context, workspace string, to adapters.Target, id string) (l adapters.Location, err error) {
	at, err := o.place(ctx, workspace, to)
	if err != nil {
		return l, err
	}
	user, begins := event.PersonOf(at.thread.Key), at.platform.Of.NewThread != nil && to.Thread == ""
	if begins && user == "" {
		one, err := o.isConversation(ctx, workspace, at)
		if err != nil {
			return l, err
		}
		begins = !one
	}
	switch {
	case user != "":
		err = at.openNow(ctx, workspace, user)
	case begins:
		at.thread.Key = at.platform.Of.NewThread(workspace, at.channel, id)
		err = at.addressed()
	}
	if err != nil {
		return l, err
	}
	l = adapters.Location{
		Platform: at.platform.Of.Name, Thread: at.thread.Key, Channel: event.Channel{ID: at.channel, Parent: at.parent}, FollowUp: at.parent != "",
		New: user == "" && begins,
	}
	if user != "" || at.platform.Of.API {
		l.Channel.Type = event.ChannelDirect
	}
	if reader, ok := at.platform.Sender.(adapters.ContextReader); ok && at.platform.Of.ThreadUnder != nil {
		l.ReplyTo, l.FollowUp = reader.Root(at.thread.Key)
		l.OpenedOn = l.ReplyTo
	}
	return l, nil
}

// openNow opens the conversation with a person. A message cannot wait for it as a post does, because it is recorded in its
// thread.
func (a *place) openNow(ctx context.Context, workspace, user string) (err error) {
	opener, ok := a.platform.Sender.(adapters.DirectOpener)
	if !ok {
		return errNotHere
	}
	if a.channel, err = opener.OpenDirect(ctx, user); isFailure(err, adapters.Permanent) {
		return event.FieldErrors{{Field: "to.user", Message: err.Error()}}
	} else if err != nil {
		return adapters.ErrBusy
	}
	a.thread.Key = a.platform.Of.Conversation(workspace, a.channel)
	return a.addressed()
}

// ThreadID returns the UUID of the thread with a key.
func (o *Outbox) ThreadID(ctx context.Context, key event.ThreadKey) (string, error) {
	return o.Threads.ThreadID(ctx, key)
}

// Announce implements ingest.Notifier: it returns the posts that show people an injected message, under its sender's name
// and source. The words are a stranger's: they are quoted, and shown as they are.
func (o *Outbox) Announce(run *runs.Run, m *event.Message) (list []outbox.Post) {
	list, err := o.announce(run, m)
	if err != nil {
		o.Log.Error("a message is not announced", "workspace", run.Workspace, "thread", run.ThreadKey, "err", err)
	}
	return list
}

func (o *Outbox) announce(run *runs.Run, m *event.Message) (list []outbox.Post, err error) {
	defer adapters.Recover(o.Log, &err, "workspace", run.Workspace)
	platform, to, err := o.way(run)
	if err != nil || platform.Sender == nil {
		return nil, err
	}
	var files []outbox.File
	for _, f := range m.Attachments {
		if f.Copy != nil {
			files = append(files, outbox.File{Name: f.Name, MimeType: f.MimeType, Size: f.Size, Bucket: f.Copy.Bucket, Path: f.Copy.Path})
		}
	}
	texts, attached := platform.posts(to, announced(m), mentioned{}, files)
	return append(texts, attached...), nil
}

// announced returns the Markdown that shows a message: a line with its sender and source, and below it the words as a
// quotation, so that no line of them can pass for such a line.
func announced(m *event.Message) string {
	var b strings.Builder
	b.WriteString("**" + markdown.Verbatim(assembly.NameOf(&m.Metadata)) + "** (" + markdown.Verbatim(assembly.CleanName(m.Metadata.Source)) + "):")
	if strings.TrimSpace(m.Content) == "" {
		return b.String()
	}
	for line := range strings.SplitSeq(lineEnds.Replace(m.Content), "\n") {
		b.WriteString("\n> " + verbatim(line))
	}
	return b.String()
}

// lineEnds makes each line end a line feed.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// verbatim returns the Markdown of a line that is shown as it is. White space at its beginning is no indentation.
func verbatim(line string) string {
	rest := strings.TrimLeftFunc(line, unicode.IsSpace)
	return strings.Repeat("\u00a0", len(line)-len(rest)) + markdown.Verbatim(strings.TrimRightFunc(rest, unicode.IsSpace))
}

// findPosts gives a run the posts that show its injected messages, and the post at the begin of its thread, so that the answer
// belongs to them. Those that are on their way are found when the call of the answer begins; see aim.
func (o *Outbox) findPosts(ctx context.Context, run *runs.Run) (err error) {
	run.Announced = nil
	for i := range run.Messages {
		m := &run.Messages[i]
		if !isInjected(m.ExternalID) {
			continue
		}
		post, shown, err := o.Deliveries.Shown(ctx, m.UUID)
		if err != nil {
			return err
		}
		if run.Announced == nil {
			run.Announced = map[string]string{}
		}
		if shown {
			run.Announced[m.UUID] = post
		}
	}
	run.Above, err = o.above(ctx, run.Workspace, threads.Thread{Row: run.Thread, Key: run.ThreadKey}, run.ID)
	return err
}

// isSeen reports whether people on the platform see a message of a run's turn. Those of programs they see if they
// are announced.
func isSeen(run *runs.Run) bool {
	return len(run.Messages) == 0 || slices.ContainsFunc(run.Messages, func(m messages.Message) bool {
		_, shown := run.Announced[m.UUID]
		return shown || !isInjected(m.ExternalID)
	})
}

// isInjected reports whether a program has injected the message with an external id.
func isInjected(externalID string) bool {
	_, ok := event.InjectedBy(externalID)
	return ok
}
