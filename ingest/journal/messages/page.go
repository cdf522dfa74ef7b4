package messages

import "parley/ingest/journal/storage"

// Size returns the bytes of a message's texts, as PageBytes counts them.
func (m *Message) Size() int { return len(m.Content) + len(m.Metadata) }

// IsFull reports whether more messages may follow a page of them.
func IsFull(list []Listed, limit int) bool {
	return storage.IsFull(list, limit, func(m *Listed) int { return m.Size() })
}

// AreMoreThreads reports whether more threads may follow a page of them.
func AreMoreThreads(list []ThreadSummary, limit int) bool {
	return storage.IsFull(list, limit, (*ThreadSummary).size)
}

func (s *ThreadSummary) size() int { return s.First.Size() }
