package send_test

import (
	"errors"
	"net/http"
	"testing"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

func TestEditShowsTheText(t *testing.T) {
	s := newFixture(t)
	s.post.Text = "**other** words"
	for _, id := range []string{s.message, s.stream} {
		if err := s.adapter.Edit(t.Context(), id, s.post); err != nil || shown(s.server, id) != s.post.Text {
			t.Errorf("%q, %v", shown(s.server, id), err)
		}
	}
	if open := s.server.OpenStreams(); len(open) != 0 {
		t.Errorf("%d streams are open", len(open))
	}
	if key := s.server.Posts()[0].Key(); key != "k1" {
		t.Errorf("the post lost its key: %q", key)
	}
}

// TestEditStopsAStreamOnce: Slack allows fewer stops than edits. Only an open stream is stopped.
func TestEditStopsAStreamOnce(t *testing.T) {
	stops := 0
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "chat.stopStream" {
			stops++
		}
	}})
	reply := replyIn(server, "hello")
	for name, begun := range map[string]struct {
		begin func() (string, error)
		want  int
	}{
		"a stream":  {func() (string, error) { return adapter.Begin(t.Context(), reply) }, 1},
		"a message": {func() (string, error) { return adapter.Send(t.Context(), reply) }, 0},
		"an ended stream": {func() (string, error) {
			id, err := adapter.Begin(t.Context(), reply)
			return id, errors.Join(err, adapter.End(t.Context(), id, reply, ""))
		}, 0},
	} {
		id, err := begun.begin()
		stops = 0
		for range 3 {
			err = errors.Join(err, adapter.Edit(t.Context(), id, reply))
		}
		if err = errors.Join(err, adapter.Remove(t.Context(), id, reply)); err != nil || stops != begun.want {
			t.Errorf("%s was stopped %d times, want %d, %v", name, stops, begun.want, err)
		}
	}
}

// TestEditStopsAnUnexpectedStream edits and removes a stream after a change of the
// configuration.
func TestEditStopsAnUnexpectedStream(t *testing.T) {
	for name, change := range map[string]func(*slack.Adapter, string, adapters.Post) error{
		"edit":   func(a *slack.Adapter, id string, p adapters.Post) error { return a.Edit(t.Context(), id, p) },
		"remove": func(a *slack.Adapter, id string, p adapters.Post) error { return a.Remove(t.Context(), id, p) },
	} {
		s := newFixture(t)
		c := testapp.Config(s.server.URL())
		c.Preview = adapters.PreviewOff
		s.post.Text = "final"
		s.server.Script("chat.stopStream", slacktest.Fault{Status: http.StatusServiceUnavailable})
		if got := testapp.Failure(t, change(slack.New("acme", c), s.stream, s.post)); got.Failure != adapters.Unclear {
			t.Errorf("%s of a stream that can't be stopped: failure %d: %v", name, got.Failure, got)
		}
		if err := change(slack.New("acme", c), s.stream, s.post); err != nil || len(s.server.OpenStreams()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
		if got := shown(s.server, s.stream); name == "edit" && got != "final" || name == "remove" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRemoveDeletesTheMessage(t *testing.T) {
	s := newFixture(t)
	for _, id := range []string{s.message, s.stream, s.message, testapp.Room + "/1600000000.000100"} {
		if err := s.adapter.Remove(t.Context(), id, s.post); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if shown(s.server, s.message) != "" || shown(s.server, s.stream) != "" || len(s.server.OpenStreams()) != 0 {
		t.Errorf("%+v", s.server.Posts())
	}
}

func TestEditRefusals(t *testing.T) {
	s := newFixture(t)
	theirs := s.server.Put(slacktest.Post{Channel: testapp.Room, User: "U1", Text: "mine"})
	for name, id := range map[string]string{
		"gone": testapp.Room + "/1600000000.000100", "another's": testapp.Room + "/" + theirs.TS, "no message": "x", "nowhere": "",
	} {
		if got := testapp.Failure(t, s.adapter.Edit(t.Context(), id, s.post)); got.Failure != adapters.Permanent {
			t.Errorf("%s: failure %d: %v", name, got.Failure, got)
		}
	}
	for _, code := range []string{"edit_window_closed", "cant_update_message", "msg_too_long", "message_not_found"} {
		s.server.Script("chat.update", slacktest.Fault{Error: code})
		if got := testapp.Failure(t, s.adapter.Edit(t.Context(), s.message, s.post)); got.Failure != adapters.Permanent {
			t.Errorf("%s: failure %d: %v", code, got.Failure, got)
		}
	}
	if err := s.adapter.Edit(t.Context(), s.message, s.post); err != nil {
		t.Error(err)
	}
	if got := testapp.Failure(t, s.adapter.Remove(t.Context(), "x", s.post)); got.Failure != adapters.Permanent {
		t.Error(got)
	}
}

// TestEditOfAClosingStreamIsNotSent checks that the refusal is not permanent.
func TestEditOfAClosingStreamIsNotSent(t *testing.T) {
	s := newFixture(t)
	refused := slacktest.Fault{Error: "streaming_state_conflict"}
	s.server.Script("chat.update", refused, refused)
	if got := testapp.Failure(t, s.adapter.Edit(t.Context(), s.stream, s.post)); got.Failure != adapters.NotSent {
		t.Errorf("failure %d: %v", got.Failure, got)
	}
	if err := s.adapter.Edit(t.Context(), s.stream, s.post); err != nil {
		t.Error(err)
	}
}

// TestEditCanBeRepeatedAfterAnyFailure repeats the call after each unclear failure.
func TestEditCanBeRepeatedAfterAnyFailure(t *testing.T) {
	for _, method := range []string{"chat.stopStream", "chat.update"} {
		for _, fault := range []slacktest.Fault{{Cut: true, Effect: true}, {Cut: true}, {Status: 500, Effect: true}} {
			s := newFixture(t)
			s.post.Text = "the whole answer"
			s.server.Script(method, fault)
			if err := s.adapter.Edit(t.Context(), s.stream, s.post); err == nil {
				t.Errorf("%s with %+v succeeded", method, fault)
			}
			if err := s.adapter.Edit(t.Context(), s.stream, s.post); err != nil || shown(s.server, s.stream) != s.post.Text {
				t.Errorf("%s with %+v: %q, %v", method, fault, shown(s.server, s.stream), err)
			}
		}
	}
}
