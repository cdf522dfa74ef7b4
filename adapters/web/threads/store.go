package threads

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/places"
)

// Store reads from the journal. The API needs no more of it.
type Store interface {
	ThreadMessages(ctx context.Context, workspace, threadID string, page messages.Page) ([]messages.Listed, error)
	Threads(ctx context.Context, workspace, before string, limit int) ([]messages.ThreadSummary, error)
	Keeper
	Lists
	Follower
	Participation
	News
}

// Keeper has the threads of the documents.
type Keeper interface {
	MakeThread(ctx context.Context, platform event.Platform, channel string, n places.Thread, participants ...string) (t places.Thread, made bool, err error)
	Thread(ctx context.Context, workspace, id string) (places.Thread, error)
	SetThreadMode(ctx context.Context, t *places.Thread, mode places.ThreadMode) error
}

// Lists finds the threads of a caller, and the senders of a thread.
type Lists interface {
	ThreadsOf(ctx context.Context, workspace, actor string, open bool, before string, limit int) ([]places.Thread, error)
	NewestMadeBy(ctx context.Context, workspace, madeBy string) (places.Thread, error)
	Senders(ctx context.Context, t *places.Thread) ([]messages.Sender, error)
}

// Participation has the callers that take part in threads.
type Participation interface {
	Participants(ctx context.Context, t *places.Thread) ([]string, error)
	TakesPart(ctx context.Context, t *places.Thread, actor string) (bool, error)
	AddParticipant(ctx context.Context, t *places.Thread, actor string) (added bool, err error)
	RemoveParticipant(ctx context.Context, t *places.Thread, actor string) error
}

// News reads what callers learn, and tells of more.
type News interface {
	NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]messages.News, error)
	FollowNews(workspace, actor string) (changed <-chan struct{}, stop func())
}

// Follower reads the changes of a thread, and tells of new ones.
type Follower interface {
	ThreadChanges(ctx context.Context, t *places.Thread, upTo int64, since time.Time, limit int) ([]messages.Listed, error)
	FollowThread(t *places.Thread) (changed <-chan struct{}, stop func())
}
