package threads

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
)

// Places is the part of the journal that has the threads, and the callers that take part in them.
type Places interface {
	MakeThread(ctx context.Context, platform event.Platform, channel string, n threads.Thread, participants ...string) (t threads.Thread, made bool, err error)
	Thread(ctx context.Context, workspace, id string) (threads.Thread, error)
	SetThreadMode(ctx context.Context, t *threads.Thread, mode threads.ThreadMode) error
	ThreadsOf(ctx context.Context, workspace, actor string, open bool, before string, limit int) ([]threads.Thread, error)
	NewestMadeBy(ctx context.Context, workspace, madeBy string) (threads.Thread, error)
	Participants(ctx context.Context, t *threads.Thread) ([]string, error)
	TakesPart(ctx context.Context, t *threads.Thread, actor string) (bool, error)
	AddParticipant(ctx context.Context, t *threads.Thread, actor string) (added bool, err error)
	RemoveParticipant(ctx context.Context, t *threads.Thread, actor string) error
	FollowThread(t *threads.Thread) (changed <-chan struct{}, stop func())
	FollowNews(workspace, actor string) (changed <-chan struct{}, stop func())
}

// Messages is the part of the journal that has the messages of threads.
type Messages interface {
	Threads(ctx context.Context, workspace, before string, limit int) ([]messages.ThreadSummary, error)
	ThreadMessages(ctx context.Context, workspace, threadID string, page messages.Page) ([]messages.Listed, error)
	ThreadChanges(ctx context.Context, t *threads.Thread, upTo int64, since time.Time, limit int) ([]messages.Listed, error)
	HistoryDay(ctx context.Context, t *threads.Thread, before time.Time, beforeSeq int64) (messages.HistoryDay, error)
	NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]messages.News, error)
	Senders(ctx context.Context, t *threads.Thread) ([]messages.Sender, error)
}
