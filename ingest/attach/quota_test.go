package attach_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// put stores a file of 100 bytes that consists of one letter.
func put(t *testing.T, s *attach.Store, sender, letter string) error {
	_, err := s.PutFor(t.Context(), sender, strings.NewReader(strings.Repeat(letter, 100)), event.Attachment{Name: "a.txt"})
	return err
}

// TestFilesOfASenderHaveABound fills the bound of a sender on two daemons with the same store.
func TestFilesOfASenderHaveABound(t *testing.T) {
	engine := newSQLite(t)
	defer engine.Close()
	now, refusals := time.Now(), 0
	j := journal.New(engine, journal.Options{Now: func() time.Time { return now }})
	open := func() *attach.Store {
		s, err := attach.New(attach.Config{Dir: t.TempDir(), MaxBytes: 1000, PerSender: 250, TTL: time.Hour}, attach.Books{Hold: j.Files.HoldCopy, Spend: j.Budgets.SpendBytes}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Refused = func(error) { refusals++ }
		return s
	}
	one, other := open(), open()
	for n, c := range []struct {
		at   *attach.Store
		want error
	}{{one, nil}, {other, nil}, {one, attach.ErrSender}, {other, attach.ErrSender}, {one, attach.ErrSender}} {
		if err := put(t, c.at, "olivia", string(rune('a'+n))); !errors.Is(err, c.want) {
			t.Errorf("file %d: %v, want %v", n, err, c.want)
		}
	}
	if err := put(t, one, "ash", "x"); err != nil {
		t.Error("another sender:", err)
	}
	if refusals != 2 {
		t.Errorf("%d reports of two daemons within a minute", refusals)
	}
	now = now.Add(time.Hour)
	if err := put(t, one, "olivia", "y"); err != nil {
		t.Error("an hour later:", err)
	}
}

// TestAllFilesHaveABound fills the quota in a folder, and in a bucket that has files of messages already.
func TestAllFilesHaveABound(t *testing.T) {
	inFolder := attach.Config{Dir: t.TempDir(), MaxBytes: 1000, Quota: 250, TTL: time.Hour}
	inBucket := s3Config(t, startS3(t))
	inBucket.Quota = 1000
	for name, c := range map[string]struct {
		config attach.Config
		had    int64
	}{"folder": {inFolder, 0}, "bucket": {inBucket, 750}} {
		var asked string
		s, err := attach.New(c.config, attach.Books{Bytes: func(_ context.Context, bucket string) (int64, error) {
			asked = bucket
			return c.had, nil
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range []error{nil, nil, attach.ErrQuota} {
			if err := put(t, s, "", string(rune('a'+n))); !errors.Is(err, want) {
				t.Errorf("%s: file %d: %v, want %v", name, n, err, want)
			}
		}
		if name == "bucket" && !strings.HasSuffix(asked, "/chat/files") {
			t.Errorf("the bucket that was counted: %q", asked)
		}
	}
}
