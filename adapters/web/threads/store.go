package threads

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/places"
)

// Places is the part of the journal that has the threads, and the callers that take part in them.
type Places interface {
	MakeThread(ctx context.Context, platform event.Platform, channel string, n places.Thread, participants ...string) (t places.Thread, made bool, err error)
	Thread(ctx context.Context, workspace, id string) (places.Thread, error)
	SetThreadMode(ctx context.Context, t *places.Thread, mode places.ThreadMode) error
	ThreadsOf(ctx context.Context, workspace, actor string, open bool, before string, limit int) ([]places.Thread, error)
	NewestMadeBy(ctx context.Context, workspace, madeBy string) (places.Thread, error)
	Participants(ctx context.Context, t *places.Thread) ([]string, error)
	TakesPart(ctx context.Context, t *places.Thread, actor string) (bool, error)
	AddParticipant(ctx context.Context, t *places.Thread, actor string) (added bool, err error)
	RemoveParticipant(ctx context.Context, t *places.Thread, actor string) error
	FollowThread(t *places.Thread) (changed <-chan struct{}, stop func())
	FollowNews(workspace, actor string) (changed <-chan struct{}, stop func())
}

// Messages is the part of the journal that has the messages of threads.
type Messages interface {
	Threads(ctx context.Context, workspace, before string, limit int) ([]messages.ThreadSummary, error)
	ThreadMessages(ctx context.Context, workspace, threadID string, page messages.Page) ([]messages.Listed, error)
	ThreadChanges(ctx context.Context, t *places.Thread, upTo int64, since time.Time, limit int) ([]messages.Listed, error)
	HistoryDay(ctx context.Context, t *places.Thread, before time.Time, beforeSeq int64) (messages.HistoryDay, error)
	NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]messages.News, error)
	Senders(ctx context.Context, t *places.Thread) ([]messages.Sender, error)
}
