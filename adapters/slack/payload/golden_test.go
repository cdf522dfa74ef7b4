package payload_test

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
	"reflect"
	"regexp"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/slack/payload"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRecordings decodes every recording of testdata/slack and compares the result with
// testdata/<name>.golden.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/slack/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			got := describeRecording(t, file)
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

// describeRecording describes each envelope of a recording in a paragraph.
func describeRecording(t *testing.T, file string) string {
	t.Helper()
	envelopes, people := recording(t, file)
	var out strings.Builder
	for i, envelope := range envelopes {
		keys := payload.Normalizer{}.Keys(envelope, people)
		if keys.Channel.Type != event.ChannelUnknown {
			people.types[keys.Channel.ID] = keys.Channel.Type
		}
		got, err := payload.Normalizer{}.Normalize(t.Context(), envelope, people)
		checkAgreement(t, i+1, keys, got, err)
		fmt.Fprintf(&out, "%d: %s\n", i+1, keys.Kind)
		writePairs(&out, "dedupe", keys.Dedupe, "alt key", keys.AltKey, "needs", keys.Needs)
		if result := keys.Result; result != nil {
			writePairs(&out, string(result.Disposition), result.Reason+result.Error)
			continue
		}
		writePairs(&out, "thread", keys.Thread, "message id", keys.MessageID, "channel", keys.Channel.ID, "stated type", keys.Channel.Type)
		writePairs(&out, "targets", strings.Join(got.Targets, " "), "ignored", got.Ignored)
		if got.Reaction != nil {
			writePairs(&out, "reaction", nonzero(*got.Reaction))
		}
		if got.Message != nil {
			writeMessage(&out, got.Message)
		}
	}
	return hash.ReplaceAllString(out.String(), "<hash>")
}

// hash matches the hashes, which the golden files leave out because they mean nothing
// to a reader.
var hash = regexp.MustCompile("[0-9a-f]{64}")

func writeMessage(out io.Writer, m *event.Message) {
	fmt.Fprintf(out, "   content: %q\n", m.Content)
	writePairs(out, "metadata", string(m.Metadata.Bytes()), "message thread", m.Thread, "type", m.Channel.Type,
		"sent", m.SentAt.Format("15:04:05.000000"), "revision", m.Revision, "addressed", m.Addressed,
		"reply to", m.ReplyTo, "opened on", m.OpenedOn, "own key", m.OwnKey)
	if m.Own {
		writePairs(out, "own", "true")
	}
	for _, a := range m.Attachments {
		writePairs(out, "file", nonzero(a))
	}
	if m.Quoted != nil {
		writePairs(out, "quoted", nonzero(*m.Quoted))
	}
	for _, q := range m.Forwarded {
		writePairs(out, "forwarded", nonzero(q))
	}
}

// nonzero describes a struct by its fields that are not zero.
func nonzero(v any) string {
	var out []string
	for field, value := range reflect.ValueOf(v).Fields() {
		switch {
		case value.IsZero():
		case value.Kind() == reflect.Slice:
			for i := range value.Len() {
				out = append(out, field.Name+":{"+nonzero(value.Index(i).Interface())+"}")
			}
		default:
			out = append(out, fmt.Sprintf("%s:%q", field.Name, fmt.Sprint(value)))
		}
	}
	return strings.Join(out, " ")
}

// writePairs writes the pairs whose second element is not empty.
func writePairs(out io.Writer, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" {
			fmt.Fprintf(out, "   %s: %s\n", pairs[i], value)
		}
	}
}

// checkAgreement compares the results of Keys and Normalize for one envelope.
func checkAgreement(t testing.TB, n int, keys event.Keys, got event.Event, err error) {
	t.Helper()
	settled := event.Result{}
	if keys.Result != nil {
		settled = *keys.Result
	}
	switch {
	case keys.Dedupe == "":
		t.Errorf("%d: no dedupe key", n)
	case settled.Disposition == event.Dead:
		if err == nil || err.Error() != settled.Error {
			t.Errorf("%d: Keys returns the error %q, Normalize returns %v", n, settled.Error, err)
		}
	case err != nil:
		t.Errorf("%d: Normalize: %v", n, err)
	case settled.Disposition == event.Ignored && got.Ignored != settled.Reason:
		t.Errorf("%d: Keys ignores for %q, Normalize for %q", n, settled.Reason, got.Ignored)
	case got.Kind != keys.Kind:
		t.Errorf("%d: Keys returns %s, Normalize returns %s", n, keys.Kind, got.Kind)
	case got.Message != nil && got.Message.ExternalID != keys.MessageID:
		t.Errorf("%d: Keys returns %s, Normalize returns %s", n, keys.MessageID, got.Message.ExternalID)
	}
}

// fakeDirectory is a directory with fixed answers.
type fakeDirectory struct {
	self  event.Self
	users map[string]adapters.User
	types map[string]event.ChannelType
	state *adaptertest.State
}

func (p fakeDirectory) Self() event.Self                             { return p.self }
func (p fakeDirectory) ChannelType(channel string) event.ChannelType { return p.types[channel] }
func (p fakeDirectory) State() adapters.State {
	if p.state == nil {
		return adaptertest.NewState()
	}
	return p.state
}

func (p fakeDirectory) User(_ context.Context, id string) (adapters.User, bool) {
	user, ok := p.users[id]
	return user, ok
}

// recording reads a file's envelopes and the directory at its beginning. A recording
// does not name our team and app, so recording sets them.
func recording(t testing.TB, file string) ([]event.Envelope, fakeDirectory) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := fakeDirectory{users: map[string]adapters.User{}, types: map[string]event.ChannelType{}, state: adaptertest.NewState()}
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
