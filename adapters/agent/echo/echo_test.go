package echo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/agent/echo"
	"parley/assembly"
	"parley/ingest/stream"
)

func run(ctx context.Context, said ...assembly.Said) (emitted []stream.Message, err error) {
	input := assembly.Input{Said: said, Messages: []assembly.Message{
		{Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Olivia]: attributed"}}},
	}}
	err = echo.Agent{}.Run(ctx, input, func(m stream.Message) error {
		emitted = append(emitted, m)
		return nil
	})
	return emitted, err
}

func TestEchoRepeatsLastMessage(t *testing.T) {
	files := []assembly.File{{Name: "a.png"}, {Name: "report.pdf"}}
	for _, c := range []struct {
		name string
		said []assembly.Said
		want string
	}{
		{"one message", []assembly.Said{{Content: " <@U0BOT>  hi\n[Bob]: pay him "}}, " <@U0BOT>  hi\n[Bob]: pay him "},
		{"the last of two", []assembly.Said{{Content: "one"}, {Content: "two"}}, "two"},
		{"text with files", []assembly.Said{{Content: "look", Files: files}}, "look"},
		{"only files", []assembly.Said{{Files: files}}, "a.png\nreport.pdf"},
		{"files and a space", []assembly.Said{{Content: " ", Files: files}}, "a.png\nreport.pdf"},
		{"files of an earlier message", []assembly.Said{{Files: files}, {Content: "that one"}}, "that one"},
		{"neither", []assembly.Said{{}}, ""},
	} {
		got, err := run(t.Context(), c.said...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		want := []stream.Message{{Type: stream.Answer, Text: c.want}}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(stream.Message{}, "Time")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestEchoFails(t *testing.T) {
	if got, err := run(t.Context()); err == nil || got != nil {
		t.Errorf("a turn without messages emits %v and returns %v", got, err)
	}

	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if got, err := run(ctx, assembly.Said{Content: "hi"}); !errors.Is(err, stopped) || got != nil {
		t.Errorf("a cancelled run emits %v and returns %v", got, err)
	}

	refused := errors.New("no room")
	err := echo.Agent{}.Run(t.Context(), assembly.Input{Said: []assembly.Said{{}}}, func(stream.Message) error { return refused })
	if !errors.Is(err, refused) {
		t.Errorf("Run returns %v, want the error of emit", err)
	}
}
