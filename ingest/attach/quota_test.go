package attach_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/ingest/attach"
	"parley/ingest/event"
)

// TestFilesHaveBounds fills the quota of all files and of a sender.
func TestFilesHaveBounds(t *testing.T) {
	open := func(quota int64) *attach.Store {
		s, err := attach.New(attach.Config{Dir: t.TempDir(), MaxBytes: 1000, Quota: quota, PerSender: 250, TTL: time.Hour},
			func(context.Context, string, string, time.Duration) error { return nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	put := func(s *attach.Store, sender, letter string) error {
		_, err := s.PutFor(t.Context(), sender, strings.NewReader(strings.Repeat(letter, 100)), event.Attachment{Name: "a.txt"})
		return err
	}
	s := open(1000)
	refusals := 0
	s.Refused = func(error) { refusals++ }
	for n, want := range []error{nil, nil, attach.ErrSender, attach.ErrSender} {
		if err := put(s, "olivia", string(rune('a'+n))); !errors.Is(err, want) {
			t.Errorf("file %d: %v, want %v", n, err, want)
		}
	}
	if err := put(s, "ash", "e"); err != nil {
		t.Error("another sender:", err)
	}
	if refusals != 1 {
		t.Errorf("%d reports within a minute", refusals)
	}
	s = open(250)
	for n, want := range []error{nil, nil, attach.ErrQuota} {
		if err := put(s, "", string(rune('a'+n))); !errors.Is(err, want) {
			t.Errorf("file %d of all: %v, want %v", n, err, want)
		}
	}
}
