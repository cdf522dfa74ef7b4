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
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// ofFiles is what holds for the files of a Sender and a Fetcher.
var ofFiles = []promise{
	{"a file arrives byte for byte, and is found again", filesArrive},
	{"a file whose call had no clear end is found", filesAreFound},
	{"a file that is not as long as it says is not shown", filesAreWhole},
	{"Fetch reads a file byte for byte", fetchReads},
	{"Fetch shows its credentials to the platform's first host alone", fetchDropsItsToken},
	{"a page on which one signs in is no file", signInIsNoFile},
	{"Fetch asks no other host", fetchAsksNoOther},
}

// bytesOf are many, all of them.
func bytesOf() []byte {
	all := make([]byte, 100_000)
	for i := range all {
		all[i] = byte(i * i >> 3)
	}
	return all
}

func filesArrive(s *stage) {
	s.play()
	post, content := s.asks(s.Room.ID, "k1"), bytesOf()
	post.File = fileOf(content)
	id := s.send(post)
	shown, there := s.shown(post.To, id)
	if !there || shown.Text != post.Text || len(shown.Files) != 1 || !bytes.Equal(shown.Files[0], content) {
		s.t.Errorf("%s shows %q with %d files", id, shown.Text, len(shown.Files))
	}
	finder := able[adapters.Finder](s)
	for key, want := range map[string]string{"k1": id, "k2": ""} {
		post.Key = key
		if got, _, err := finder.Find(s.ctx, post); s.heard(err) != nil || got != want {
			s.t.Errorf("%s is %q, %v; want %q", key, got, err, want)
		}
	}
}

func filesAreFound(s *stage) {
	finder := able[adapters.Finder](s)
	s.play()
	s.needs(s.Fault != nil, "faults")
	for _, trouble := range []Trouble{LostLate, BrokenLate} {
		post := s.asks(s.Room.ID, "k1")
		post.File = fileOf([]byte("content"))
		if s.Fault(Upload, trouble) == nil {
			continue
		}
		_, err := able[adapters.Sender](s).Send(s.ctx, post)
		s.fails(err, adapters.Unclear, "%s", trouble)
		id, found, err := finder.Find(s.ctx, post)
		s.must(err)
		if _, there := s.shown(post.To, id); !found || !there {
			s.t.Errorf("%s: found %q, %v", trouble, id, found)
		}
	}
}

func filesAreWhole(s *stage) {
	sender := able[adapters.Sender](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	for _, size := range []int64{6, 8} {
		post.File = fileOf(nil)
		post.File.Size = size
		post.File.Open = func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("conten"), pause{}, strings.NewReader("t"))), nil
		}
		_, err := sender.Send(s.ctx, post)
		s.fails(err, adapters.Permanent, "%d of 7 bytes", size)
	}
	if shown := s.Shown(post.To); len(shown) != 0 {
		s.t.Errorf("%d posts", len(shown))
	}
}

// pause reads nothing, and takes a moment: time for the platform to answer what it
// has.
type pause struct{}

// Read implements io.Reader.
func (pause) Read([]byte) (int, error) {
	<-time.After(moment)
	return 0, io.EOF
}

// shares puts a file there; where the platform has no such file, the test is skipped.
func (s *stage) shares(file File) event.Attachment {
	s.t.Helper()
	s.needs(s.Share != nil, "files to share")
	attachment, ok := s.Share(file)
	s.needs(ok, fmt.Sprintf("file that is %s", file.Where))
	return attachment
}

// fetch reads a file to its end.
func (s *stage) fetch(attachment event.Attachment) ([]byte, error) {
	s.t.Helper()
	content, err := able[adapters.Fetcher](s).Fetch(s.ctx, attachment)
	if s.heard(err) != nil {
		return nil, err
	}
	defer content.Close()
	if d, ok := content.(adapters.Described); ok && d.Describe().ID != attachment.ID {
		s.t.Errorf("described as %+v, want %q", d.Describe(), attachment.ID)
	}
	all, err := io.ReadAll(content)
	return all, s.heard(err)
}

func fetchReads(s *stage) {
	able[adapters.Fetcher](s)
	want := bytesOf()
	attachment := s.shares(File{Content: want, Where: Here})
	if got, err := s.fetch(attachment); err != nil || !bytes.Equal(got, want) {
		s.t.Errorf("%d bytes, %v", len(got), err)
	}
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := able[adapters.Fetcher](s).Fetch(ended, attachment); s.heard(err) == nil {
		s.t.Error("read after its time")
	}
}

func fetchDropsItsToken(s *stage) {
	able[adapters.Fetcher](s)
	if got, err := s.fetch(s.shares(File{Content: []byte("content"), Where: SentOn})); err != nil || string(got) != "content" {
		s.t.Errorf("%q, %v", got, err)
	}
}

func signInIsNoFile(s *stage) {
	able[adapters.Fetcher](s)
	if got, err := s.fetch(s.shares(File{Content: []byte("content"), Where: Unreadable})); err == nil {
		s.t.Errorf("read %q", got)
	}
}

func fetchAsksNoOther(s *stage) {
	able[adapters.Fetcher](s)
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	s.t.Cleanup(other.Close)
	for _, where := range []Where{Elsewhere, SentElsewhere} {
		got, err := s.fetch(s.shares(File{Content: []byte("content"), Where: where, At: other.URL}))
		if err == nil || asked.Load() != 0 {
			s.t.Errorf("%s: read %q, and asked %d times", where, got, asked.Load())
		}
	}
}
