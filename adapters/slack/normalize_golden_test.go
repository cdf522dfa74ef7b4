package slack_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestRecordings reads every recording of testdata/slack and compares what each
// envelope means with testdata/<name>.golden.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("../../testdata/slack/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			got := meanings(t, file)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// meanings tells what each envelope of a recording is, a paragraph each.
func meanings(t *testing.T, file string) string {
	t.Helper()
	envelopes, people := recording(t, file)
	var out strings.Builder
	for i, envelope := range envelopes {
		keys := slack.Normalizer{}.Keys(envelope, people)
		if keys.Channel.Type != event.ChannelUnknown {
			people.types[keys.Channel.ID] = keys.Channel.Type
		}
		said, err := slack.Normalizer{}.Normalize(t.Context(), envelope, people)
		checkAgreement(t, i+1, keys, said, err)
		fmt.Fprintf(&out, "%d: %s\n", i+1, keys.Kind)
		tell(&out, "dedupe", keys.Dedupe, "twin", keys.Twin, "needs", keys.Needs)
		if fate := keys.Settled; fate != nil {
			tell(&out, string(fate.Disposition), fate.Reason+fate.Error)
			continue
		}
		tell(&out, "thread", keys.Thread, "subject", keys.Subject, "channel", keys.Channel.ID, "told type", keys.Channel.Type)
		tell(&out, "targets", strings.Join(said.Targets, " "), "ignored", said.Ignored)
		if v := said.Viewing; v != nil {
			tell(&out, "viewing", fmt.Sprintf("%s at %s, opened: %v, %s", v.SenderID, v.At.Format("15:04:05.000000"), v.Opened, v.Extra))
		}
		if said.Reaction != nil {
			tell(&out, "reaction", fmt.Sprintf("%+v", *said.Reaction))
		}
		if said.Message != nil {
			tellMessage(&out, said.Message)
		}
	}
	return hash.ReplaceAllString(out.String(), "<hash>")
}

// hash is left out of the golden files: it says nothing to a reader.
var hash = regexp.MustCompile("[0-9a-f]{64}")

func tellMessage(out io.Writer, m *event.Message) {
	fmt.Fprintf(out, "   content: %q\n", m.Content)
	tell(out, "metadata", string(m.Metadata.Bytes()), "message thread", m.Thread, "type", m.Channel.Type,
		"sent", m.SentAt.Format("15:04:05.000000"), "revision", m.Revision, "addressed", m.Addressed,
		"reply to", m.ReplyTo, "opened on", m.OpenedOn, "own key", m.OwnKey)
	if m.Own {
		tell(out, "own", "true")
	}
	for _, a := range m.Attachments {
		tell(out, "file", fmt.Sprintf("%+v", a))
	}
	if m.Quoted != nil {
		tell(out, "quoted", fmt.Sprintf("%+v", *m.Quoted))
	}
	for _, q := range m.Forwarded {
		tell(out, "forwarded", fmt.Sprintf("%+v", q))
	}
}

// tell writes the pairs whose second is not empty.
func tell(out io.Writer, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" {
			fmt.Fprintf(out, "   %s: %s\n", pairs[i], value)
		}
	}
}

// checkAgreement holds what Keys and Normalize say of one envelope against each other.
func checkAgreement(t testing.TB, n int, keys event.Keys, said event.Event, err error) {
	t.Helper()
	settled := event.Fate{}
	if keys.Settled != nil {
		settled = *keys.Settled
	}
	switch {
	case keys.Dedupe == "":
		t.Errorf("%d: no dedupe key", n)
	case settled.Disposition == event.Dead:
		if err == nil || err.Error() != settled.Error {
			t.Errorf("%d: keys say dead: %s; normalize says %v", n, settled.Error, err)
		}
	case err != nil:
		t.Errorf("%d: normalize: %v", n, err)
	case settled.Disposition == event.Ignored && said.Ignored != settled.Reason:
		t.Errorf("%d: keys ignore for %q, normalize for %q", n, settled.Reason, said.Ignored)
	case said.Kind != keys.Kind:
		t.Errorf("%d: keys say %s, normalize says %s", n, keys.Kind, said.Kind)
	case said.Message != nil && said.Message.ExternalID != keys.Subject:
		t.Errorf("%d: keys say %s, normalize says %s", n, keys.Subject, said.Message.ExternalID)
	}
}

// people is a directory with a fixed answer for everything.
type people struct {
	self  event.Self
	users map[string]adapters.User
	types map[string]event.ChannelType
}

func (p people) Self() event.Self                             { return p.self }
func (p people) ChannelType(channel string) event.ChannelType { return p.types[channel] }
func (p people) User(_ context.Context, id string) (adapters.User, bool) {
	user, ok := p.users[id]
	return user, ok
}

// recording reads a file's envelopes, and the names with which it begins. The
// team and the app are ours: a recording does not name them.
func recording(t testing.TB, file string) ([]event.Envelope, people) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := people{users: map[string]adapters.User{}, types: map[string]event.ChannelType{}}
	var envelopes []event.Envelope
	lines := bufio.NewReader(bytes.NewReader(raw))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return envelopes, known
		}
		var entry struct {
			Workspace, Transport string
			Body                 json.RawMessage
			Directory            *struct {
				Users []struct {
					ID          string `json:"id"`
					DisplayName string `json:"display_name"`
					IsBot       bool   `json:"is_bot"`
				}
				Self event.Self
			}
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Directory == nil {
			envelopes = append(envelopes, event.Envelope{
				Workspace: entry.Workspace, Platform: event.Slack, Transport: entry.Transport, Body: entry.Body,
			})
			continue
		}
		known.self = entry.Directory.Self
		known.self.TeamID, known.self.AppID = "TACME0001", "APARLEY01"
		for _, user := range entry.Directory.Users {
			known.users[user.ID] = adapters.User{DisplayName: user.DisplayName, IsBot: user.IsBot}
		}
	}
}
