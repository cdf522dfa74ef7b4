package threads

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// Store reads from the journal. The API needs no more of it.
type Store interface {
	ThreadMessages(ctx context.Context, workspace, threadID string, page journal.Page) ([]journal.Listed, error)
	Threads(ctx context.Context, workspace, before string, limit int) ([]journal.ThreadSummary, error)
	Keeper
	Lists
	Follower
	Participation
	News
}

// Keeper has the threads of the documents.
type Keeper interface {
	MakeThread(ctx context.Context, platform event.Platform, channel string, n journal.Thread, participants ...string) (t journal.Thread, made bool, err error)
	Thread(ctx context.Context, workspace, id string) (journal.Thread, error)
	SetThreadMode(ctx context.Context, t *journal.Thread, mode journal.ThreadMode) error
}

// Lists finds the threads of a caller, and the senders of a thread.
type Lists interface {
	ThreadsOf(ctx context.Context, workspace, actor string, open bool, before string, limit int) ([]journal.Thread, error)
	NewestMadeBy(ctx context.Context, workspace, madeBy string) (journal.Thread, error)
	Senders(ctx context.Context, t *journal.Thread) ([]journal.Sender, error)
}

// Participation has the callers that take part in threads.
type Participation interface {
	Participants(ctx context.Context, t *journal.Thread) ([]string, error)
	TakesPart(ctx context.Context, t *journal.Thread, actor string) (bool, error)
	AddParticipant(ctx context.Context, t *journal.Thread, actor string) (added bool, err error)
	RemoveParticipant(ctx context.Context, t *journal.Thread, actor string) error
}

// News reads what callers learn, and tells of more.
type News interface {
	NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]journal.News, error)
	FollowNews(workspace, actor string) (changed <-chan struct{}, stop func())
}

// Follower reads the changes of a thread, and tells of new ones.
type Follower interface {
	ThreadChanges(ctx context.Context, t *journal.Thread, upTo int64, since time.Time, limit int) ([]journal.Listed, error)
	FollowThread(t *journal.Thread) (changed <-chan struct{}, stop func())
}
