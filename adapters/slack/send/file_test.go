package send_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

func TestSendUploadsAFileUnderItsKey(t *testing.T) {
	s := newFixture(t)
	s.post.Key, s.post.Text = "k7", "The **chart** <@U1>"
	s.post.File = file("Q3 chart final.v2.svg", "<svg/>")
	id, err := s.adapter.Send(t.Context(), s.post)
	if err != nil {
		t.Fatal(err)
	}
	got := s.server.Uploads()
	if len(got) != 1 || got[0].Name != "Q3 chart final.v2-k7.svg" || got[0].Title != s.post.File.Name || string(got[0].Content) != "<svg/>" {
		t.Fatalf("%+v", got)
	}
	if want := testapp.Room + "/" + got[0].TS; id != want || shown(s.server, id) != "The *chart* <@U1>" {
		t.Errorf("id %q, want %q; %q", id, want, shown(s.server, id))
	}
	if message, _ := s.server.Message(testapp.Room, got[0].TS); message.ThreadTS != s.post.To.Place {
		t.Errorf("in the thread %q", message.ThreadTS)
	}
	if found, ok, err := s.adapter.Find(t.Context(), s.post); found != id || !ok || err != nil {
		t.Errorf("found %q, %v, %v", found, ok, err)
	}
	s.post.Key = "k8"
	if found, ok, err := s.adapter.Find(t.Context(), s.post); ok || err != nil {
		t.Errorf("found another's file: %q, %v", found, err)
	}
}

// TestFindFindsAFileAfterAnUnclearUpload loses the answer, after Slack has shared the
// file.
func TestFindFindsAFileAfterAnUnclearUpload(t *testing.T) {
	names := []string{"a", "a.tar-gz", ".hidden", "a.", "notes no. 7 of the meeting in May"}
	for i, method := range slices.Repeat([]string{"files.completeUploadExternal", "files.info"}, len(names)) {
		s := newFixture(t)
		s.post.Key, s.post.File = "k7", file(names[i/2], "content")
		s.server.Script(method, slacktest.Fault{Cut: true, Effect: true})
		if _, err := s.adapter.Send(t.Context(), s.post); testapp.Failure(t, err).Failure != adapters.Unclear {
			t.Errorf("%s: %v", method, err)
		}
		if id, found, err := s.adapter.Find(t.Context(), s.post); !found || err != nil || len(s.server.Uploads()) != 1 {
			t.Errorf("%s of %s: %q, %v, %v", method, names[i/2], id, found, err)
		}
	}
}

func TestSendRefusesAFileOfTheWrongSize(t *testing.T) {
	s := newFixture(t)
	for name, c := range map[string]struct {
		size    int64
		content string
		want    adapters.SendFailure
	}{
		"empty": {0, "", adapters.Permanent}, "too large": {2 << 30, "", adapters.Permanent},
		"shorter": {9, "content", adapters.Permanent}, "longer": {5, "content", adapters.Permanent},
	} {
		s.post.File = file("a", c.content)
		s.post.File.Size = c.size
		if _, err := s.adapter.Send(t.Context(), s.post); testapp.Failure(t, err).Failure != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.post.File = file("a", "content")
	s.post.File.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("the disk is offline") }
	if _, err := s.adapter.Send(t.Context(), s.post); testapp.Failure(t, err).Failure != adapters.NotSent || !strings.Contains(err.Error(), "disk") {
		t.Errorf("%v", err)
	}
	s.post.File.Open = func(context.Context) (io.ReadCloser, error) { return nil, fmt.Errorf("open it: %w", fs.ErrNotExist) }
	if _, err := s.adapter.Send(t.Context(), s.post); testapp.Failure(t, err).Failure != adapters.Permanent {
		t.Errorf("a deleted file: %v", err)
	}
	if got := s.server.Uploads(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestFileIsUploadedToSlackOnly answers with upload addresses that are not Slack's.
func TestFileIsUploadedToSlackOnly(t *testing.T) {
	s := newFixture(t)
	for _, address := range []string{"http://127.0.0.1:1/x", "https://slack.com.evil.example/x", "https://evilslack.com/x", "http://files.slack.com/x", ":"} {
		s.server.Script("files.getUploadURLExternal", slacktest.Fault{Body: `{"ok":true,"file_id":"F1","upload_url":"` + address + `"}`})
		s.post.File = file("a", "content")
		if _, err := s.adapter.Send(t.Context(), s.post); testapp.Failure(t, err).Failure != adapters.Permanent {
			t.Errorf("%s: %v", address, err)
		}
	}
}
