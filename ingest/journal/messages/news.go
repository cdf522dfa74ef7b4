package messages

import (
	"context"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// News is one fact for an actor: it takes part in a thread, or a message of a thread mentions it.
type News struct {
	Seq    int64 // 1, 2, 3 … of the actor; some may be missing
	Thread threads.Thread
	// Message mentions the actor; nil: the actor began to take part.
	Message *Listed
	// Void says that there is nothing to tell any more: the message was deleted, or the actor may not
	// read the thread.
	Void bool
}

// NewsOf returns the news of an actor after a seq, in order. If open is set, the actor reads each
// thread that is not for its participants alone. A page ends at PageBytes.
func (m *Messages) NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]News, error) {
	return storage.Read(ctx, m.db, func(tx *storage.Txn) (page []News) {
		bytes := 0
		for _, told := range threads.NewsOf(tx, workspace, actor, open, after, limit) {
			n := News{Seq: told.Seq, Thread: told.Thread, Void: !told.Reads}
			if !n.Void && told.Message != 0 {
				n.Message = ByRow(tx, told.Message)
				if n.Void = n.Message == nil || !n.Message.DeletedAt.IsZero(); n.Void {
					n.Message = nil
				} else {
					bytes += n.Message.Size()
				}
			}
			if page = append(page, n); bytes >= storage.PageBytes {
				break
			}
		}
		return page
	})
}
