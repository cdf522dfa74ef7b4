package tools

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	webthreads "parley/adapters/web/threads"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// message is a message in a result. The members that name its author and its place are data of their own, so that
// no text can pretend to be them.
type message struct {
	ID        string     `json:"id"`
	ThreadID  string     `json:"thread_id"`
	ThreadSeq int64      `json:"thread_seq" jsonschema:"the message's number in its thread"`
	SenderID  string     `json:"sender_id" jsonschema:"the author, which Parley has verified: the platform and its id of the user"`
	Name      string     `json:"name" jsonschema:"the display name of the author, which the author may choose"`
	Role      string     `json:"role" jsonschema:"user, assistant or system"`
	Content   string     `json:"content" jsonschema:"what the author wrote"`
	Time      time.Time  `json:"time"`
	EditedAt  *time.Time `json:"edited_at,omitempty"`
	DeletedAt *time.Time `json:"deleted_at,omitempty"`
	Files     []file     `json:"files,omitempty"`
	Channel   string     `json:"channel,omitempty" jsonschema:"of a message that was found"`
}

// file is a file of a message.
type file struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size" jsonschema:"in bytes"`
}

// viewOf returns a stored message as a result has it.
func viewOf(threadID string, m *messages.Message) message {
	metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one names nobody
	view := message{
		ID: m.UUID, ThreadID: threadID, ThreadSeq: m.Seq, SenderID: m.SenderID, Name: metadata.SenderDisplayName, Role: m.Role(),
		Content: webthreads.Display(m), Time: m.SentAt,
	}
	if !m.EditedAt.IsZero() {
		view.EditedAt = &m.EditedAt
	}
	if !m.DeletedAt.IsZero() {
		view.DeletedAt = &m.DeletedAt
	}
	for _, a := range m.Attachments {
		view.Files = append(view.Files, file{a.Name, a.MimeType, a.Size})
	}
	return view
}

// limitOf returns the length of a page that a call asks for.
func limitOf(given *int, usual, most int, faults *event.FieldErrors) int {
	if given == nil {
		return usual
	}
	faults.Check(*given >= 1 && *given <= most, "limit", "must be 1 to "+strconv.Itoa(most))
	return *given
}

type readThread struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	ThreadID  string `json:"thread_id,omitempty" jsonschema:"the UUID of the thread; without it, that of the run, if an agent asks during a run"`
	After     int64  `json:"after,omitempty" jsonschema:"only messages with a higher thread_seq"`
	Before    int64  `json:"before,omitempty" jsonschema:"only messages with a lower thread_seq; without after, the last ones of them"`
	Limit     *int   `json:"limit,omitempty" jsonschema:"1 to 500 messages; without it, 100"`
}

type threadPage struct {
	Messages []message `json:"messages"`
	Next     *int64    `json:"next" jsonschema:"after of the next page, or before if the call had no after; null if there is none"`
}

// readThread returns a page of a thread. A caller without the right to list a workspace's threads must know the UUID,
// and reads threads of its own workspace alone.
func (c call) readThread(ctx context.Context, in readThread) (out threadPage, err error) {
	var faults event.FieldErrors
	bounds := messages.Page{After: in.After, Before: in.Before, Limit: limitOf(in.Limit, exchange.DefaultPage, exchange.PageLimit, &faults)}
	id := strings.ToLower(in.ThreadID)
	if id == "" && c.view != nil {
		id = c.view.run.ThreadID
	}
	faults.Check(payload.IsUUID(id), "thread_id", "must be a UUID")
	faults.Check(in.After >= 0, "after", "must be a thread_seq: 0 or more")
	faults.Check(in.Before >= 0, "before", "must be a thread_seq: 0 or more")
	if len(faults) > 0 {
		return out, faults
	}
	workspace, err := c.workspace(in.Workspace, mayRead)
	if err == nil {
		err = c.view.sees(ctx, id)
	}
	if err != nil {
		return out, err
	}
	if v := c.view; v != nil {
		out.Messages, out.Next, err = v.readThread(ctx, c, id, bounds)
		return out, err
	}
	list, next, err := c.Threads.Read(ctx, c.Caller, workspace, id, bounds)
	out = threadPage{Messages: make([]message, len(list)), Next: next}
	for i := range list {
		out.Messages[i] = viewOf(id, &list[i].Message)
	}
	return out, err
}

// readThread returns the messages of a page of a thread that the agent sees.
func (v *view) readThread(ctx context.Context, c call, id string, bounds messages.Page) ([]message, *int64, error) {
	limit, backwards := bounds.Limit, bounds.Before > 0 && bounds.After == 0
	bounds.Limit = exchange.PageLimit
	seen, next, err := page(limit, "", func(from string) ([]messages.Listed, bool, error) {
		if seq, err := strconv.ParseInt(from, 10, 64); err == nil && backwards {
			bounds.Before = seq
		} else if err == nil {
			bounds.After = seq
		}
		list, more, err := c.Threads.Read(ctx, c.Caller, v.run.Workspace, id, bounds)
		if backwards {
			slices.Reverse(list)
		}
		return list, more != nil, err
	}, func(m *messages.Listed) (message, bool, error) {
		shown, ok, err := v.message(ctx, id, m.Message)
		return viewOf(id, &shown), ok, err
	}, func(m *messages.Listed) string { return strconv.FormatInt(m.Seq, 10) })
	if backwards {
		slices.Reverse(seen)
	}
	if next == nil {
		return seen, nil, err
	}
	seq, _ := strconv.ParseInt(*next, 10, 64) // of a thread_seq
	return seen, &seq, err
}

type listThreads struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	Before    string `json:"before,omitempty" jsonschema:"next of the page before"`
	Limit     *int   `json:"limit,omitempty" jsonschema:"1 to 500 threads; without it, 100"`
}

type threadList struct {
	Threads []webthreads.Thread `json:"threads"`
	Next    *string             `json:"next" jsonschema:"before of the next page; null if there is none"`
}

// listThreads returns a page of the threads of a workspace.
func (c call) listThreads(ctx context.Context, in listThreads) (out threadList, err error) {
	var faults event.FieldErrors
	limit := limitOf(in.Limit, exchange.DefaultPage, exchange.PageLimit, &faults)
	if len(faults) > 0 {
		return out, faults
	}
	workspace, err := c.workspace(in.Workspace, mayList)
	if err != nil {
		return out, err
	}
	if v := c.view; v != nil {
		limit = min(limit, exchange.DefaultPage) // each thread is looked at
		out.Threads, out.Next, err = page(limit, in.Before, func(from string) ([]webthreads.Thread, bool, error) {
			list, next, err := c.Threads.List(ctx, workspace, from, limit)
			return list, next != nil, err
		}, func(t *webthreads.Thread) (webthreads.Thread, bool, error) { return v.thread(ctx, *t) }, (*webthreads.Thread).Cursor)
		return out, err
	}
	out.Threads, out.Next, err = c.Threads.List(ctx, workspace, in.Before, limit)
	return out, err
}

// thread returns a thread as the agent sees it: without a title from a message that it does not see; false if it does not see
// the thread.
func (v *view) thread(ctx context.Context, t webthreads.Thread) (webthreads.Thread, bool, error) {
	err := v.sees(ctx, t.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	_, ok, err := v.sight.Shown(ctx, t.ID, t.First)
	if !ok {
		t.Title = ""
	}
	return t, true, err
}

// channelPage bounds a page of channels, because the platform may be asked for each name.
const channelPage = 20

type listChannels struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	After     string `json:"after,omitempty" jsonschema:"next of the page before"`
}

type channelList struct {
	Channels []channel `json:"channels"`
	Next     *string   `json:"next" jsonschema:"after of the next page; null if there is none"`
}

type channel struct {
	ID   string            `json:"id"`
	Type event.ChannelType `json:"type" jsonschema:"room, group or direct"`
	Name string            `json:"name,omitempty" jsonschema:"absent if it is not known"`
}

// listChannels returns a page of the channels of a workspace from which something has come.
func (c call) listChannels(ctx context.Context, in listChannels) (out channelList, err error) {
	workspace, err := c.workspace(in.Workspace, mayList)
	if err != nil {
		return out, err
	}
	shown := func(found threads.Channel) channel {
		named := channel{ID: found.ID, Type: found.Type}
		if found.Type == event.ChannelRoom {
			named.Name, _ = c.ChannelName(ctx, workspace, found.ID)
		}
		return named
	}
	v := c.view
	if v == nil {
		list, err := c.Places.Channels(ctx, workspace, in.After, channelPage)
		out.Channels = make([]channel, len(list))
		for i := range list {
			out.Channels[i] = shown(list[i])
		}
		if len(list) == channelPage {
			out.Next = &list[channelPage-1].ID
		}
		return out, err
	}
	out.Channels, out.Next, err = page(channelPage, in.After, func(from string) ([]threads.Channel, bool, error) {
		list, err := c.Places.Channels(ctx, workspace, from, channelPage)
		return list, len(list) == channelPage, err
	}, func(found *threads.Channel) (channel, bool, error) {
		if found.ID != v.run.Channel && !v.seesChannel(ctx, found.ID, "") {
			return channel{}, false, nil
		}
		return shown(*found), true, nil
	}, func(found *threads.Channel) string { return found.ID })
	return out, err
}
