package runs

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// longRun is a run with many large messages, which are made when they are read.
type longRun struct {
	source
	events, size int
	first, live  uint64 // bytes on the heap at the first read, and the most at any
}

func (l *longRun) RunEvents(_ context.Context, run string, after int64, limit int) (runs.Page, error) {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	if l.live = max(l.live, memory.HeapAlloc); l.first == 0 {
		l.first = memory.HeapAlloc
	}
	page := runs.Page{Status: runs.Status{ID: run, State: "running"}}
	for bytes := 0; len(page.Events) < limit && int(after) < l.events && bytes < storage.PageBytes; bytes += l.size {
		after++
		m := stream.Message{Type: stream.Update, Text: strings.Repeat("x", l.size), Time: time.UnixMilli(after)}
		page.Events = append(page.Events, runs.Event{Seq: after, Message: m})
	}
	page.Full = int(after) < l.events
	return page, nil
}

func (*longRun) RunMessages(context.Context, string) ([]messages.Message, error) {
	return []messages.Message{{Author: messages.ByHuman, Version: 1, Content: "so?", CreatedAt: time.UnixMilli(1)}}, nil
}

// TestAPageOfARunIsReadAlone reads a run of 44 MB page by page: each kept message comes once, in order,
// and no more than a few pages are in memory.
func TestAPageOfARunIsReadAlone(t *testing.T) {
	runs := &longRun{events: 1100, size: 40 << 10}
	var ids []int64
	for after, pages := int64(0), 0; ; pages++ {
		page, next, dropped, err := runReader{runs: runs, run: "r", since: time.UnixMilli(150)}.page(t.Context(), after)
		if err != nil || dropped != runs.events+1-stream.MaxKept {
			t.Fatalf("page %d: %d dropped, %v", pages, dropped, err)
		}
		for _, e := range page {
			ids = append(ids, e.Seq)
		}
		if len(page) > storage.PageBytes/runs.size+1 || len(page) == 0 || next > 0 && page[len(page)-1].Seq > next {
			t.Fatalf("page %d has %d messages; the next one is behind %d", pages, len(page), next)
		}
		if after = next; next == 0 {
			break
		}
	}
	var want []int64
	for id := int64(150); id <= int64(runs.events); id++ {
		want = append(want, id)
	}
	if fmt.Sprint(ids) != fmt.Sprint(want) {
		t.Errorf("the messages are %v", ids)
	}
	if held := runs.live - runs.first; held > 5*storage.PageBytes {
		t.Errorf("%d MB are in memory", held>>20)
	}
}
