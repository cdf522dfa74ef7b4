package adaptertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"parley/adapters"
	"parley/ingest/event"
)

// filePromises are the promises about files of a Sender and a Fetcher.
var filePromises = []promise{
	{"an uploaded file is shown byte for byte, and Find finds it", filesArrive},
	{"Find finds a file whose upload ended unclearly", filesAreFound},
	{"a file with a wrong size is not shown", wrongSizeIsRefused},
	{"Fetch reads a file byte for byte", fetchReads},
	{"Fetch sends its credentials only to the platform's first host", fetchHidesCredentials},
	{"Fetch refuses a sign-in page", signInPageIsRefused},
	{"Fetch calls no foreign host", fetchRefusesForeignHosts},
}

// manyBytes returns a content with all values of a byte.
func manyBytes() []byte {
	all := make([]byte, 100_000)
	for i := range all {
		all[i] = byte(i * i >> 3)
	}
	return all
}

// withFile returns a post with a file and, if the platform has such posts, its text.
func (s *fixture) withFile(post adapters.Post, content []byte) adapters.Post {
	if post.File = fileOf(content); s.FileAlone {
		post.Text = ""
	}
	return post
}

func filesArrive(s *fixture) {
	s.start()
	content := manyBytes()
	post := s.withFile(s.ask(s.Room.ID, "k1"), content)
	id := s.send(post)
	shown, there := s.shown(post.To, id)
	if !there || shown.Text != post.Text || len(shown.Files) != 1 || !bytes.Equal(shown.Files[0], content) {
		s.t.Errorf("the platform shows %s with text %q and %d files", id, shown.Text, len(shown.Files))
	}
	finder := ability[adapters.Finder](s)
	for key, want := range map[string]string{"k1": id, "k2": ""} {
		post.Key = key
		if got, _, err := finder.Find(s.ctx, post); s.record(err) != nil || got != want {
			s.t.Errorf("Find returns %[2]q, %[3]v for %[1]s; want %[4]q", key, got, err, want)
		}
	}
}

func filesAreFound(s *fixture) {
	finder := ability[adapters.Finder](s)
	s.start()
	s.require(s.Fault != nil, "faults")
	n := 0
	for failure := range s.failures(Upload, LostLate, BrokenLate) {
		n++
		post := s.withFile(s.ask(s.Room.ID, fmt.Sprint("k", n)), []byte("content"))
		_, err := ability[adapters.Sender](s).Send(s.ctx, post)
		s.fails(err, adapters.Unclear, "%s", failure)
		id, found, err := finder.Find(s.ctx, post)
		s.must(err)
		if _, there := s.shown(post.To, id); !found || !there {
			s.t.Errorf("%s: Find returns %q, %v", failure, id, found)
		}
	}
}

func wrongSizeIsRefused(s *fixture) {
	sender := ability[adapters.Sender](s)
	s.start()
	post := s.ask(s.Room.ID, "k1")
	for _, size := range []int64{6, 8} {
		post = s.withFile(post, nil)
		post.File.Size = size
		post.File.Open = func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("conten"), strings.NewReader("t"))), nil
		}
		_, err := sender.Send(s.ctx, post)
		s.fails(err, adapters.Permanent, "size %d of 7 bytes", size)
	}
	s.showsNothing(post)
}

// share shares a file. If the platform has no such file, share skips the test.
func (s *fixture) share(file File) event.Attachment {
	s.t.Helper()
	s.require(s.Share != nil, "files to share")
	attachment, ok := s.Share(file)
	s.require(ok, fmt.Sprintf("file that is %s", file.Where))
	return attachment
}

// fetch reads a whole file.
func (s *fixture) fetch(attachment event.Attachment) ([]byte, error) {
	s.t.Helper()
	content, err := ability[adapters.Fetcher](s).Fetch(s.ctx, attachment)
	if s.record(err) != nil {
		return nil, err
	}
	defer content.Close()
	if d, ok := content.(adapters.Described); ok && d.Describe().ID != attachment.ID {
		s.t.Errorf("the file describes itself as %+v, want %q", d.Describe(), attachment.ID)
	}
	all, err := io.ReadAll(content)
	return all, s.record(err)
}

func fetchReads(s *fixture) {
	ability[adapters.Fetcher](s)
	want := manyBytes()
	attachment := s.share(File{Content: want, Where: Here})
	if got, err := s.fetch(attachment); err != nil || !bytes.Equal(got, want) {
		s.t.Errorf("Fetch returns %d bytes, %v", len(got), err)
	}
	if _, err := ability[adapters.Fetcher](s).Fetch(s.ended(), attachment); s.record(err) == nil {
		s.t.Error("Fetch succeeded after the end of its context")
	}
}

func fetchHidesCredentials(s *fixture) {
	ability[adapters.Fetcher](s)
	if got, err := s.fetch(s.share(File{Content: []byte("content"), Where: SentOn})); err != nil || string(got) != "content" {
		s.t.Errorf("Fetch returns %q, %v", got, err)
	}
}

func signInPageIsRefused(s *fixture) {
	ability[adapters.Fetcher](s)
	if got, err := s.fetch(s.share(File{Content: []byte("content"), Where: Unreadable})); err == nil {
		s.t.Errorf("Fetch returns %q", got)
	}
}

func fetchRefusesForeignHosts(s *fixture) {
	ability[adapters.Fetcher](s)
	var calls atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	s.t.Cleanup(other.Close)
	for _, where := range []Where{Elsewhere, SentElsewhere} {
		got, err := s.fetch(s.share(File{Content: []byte("content"), Where: where, At: other.URL}))
		if err == nil || calls.Load() != 0 {
			s.t.Errorf("%s: Fetch returns %q and called the foreign host %d times", where, got, calls.Load())
		}
	}
}
