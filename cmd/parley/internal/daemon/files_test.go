package daemon_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/ingest/attach/s3test"
	"parley/ingest/journal/postgres/postgrestest"
)

const catPNG = "\x89PNG\r\n\x1a\n a cat"

// s3Secret is the secret key of a test's bucket. It must not appear anywhere.
const s3Secret = "canary-s3-3f9ad0"

// UnmarshalJSON reads a message whose content is a text or a list of parts. The text of an
// image is its URL.
func (s *chatMessage) UnmarshalJSON(raw []byte) error {
	var message struct {
		Role    string
		Content json.RawMessage
	}
	if err := json.Unmarshal(raw, &message); err != nil {
		return err
	}
	s.Role = message.Role
	if json.Unmarshal(message.Content, &s.Content) == nil {
		return nil
	}
	var parts []struct {
		Text     string
		ImageURL struct{ URL string } `json:"image_url"`
		File     struct {
			Data string `json:"file_data"`
		}
	}
	err := json.Unmarshal(message.Content, &parts)
	for _, p := range parts {
		s.Content += p.Text + p.ImageURL.URL + p.File.Data + "\n"
	}
	return err
}

// attachmentsConfig returns the configuration of a node that has its own disk.
func attachmentsConfig(store, disk, s3 string) string {
	return `
listen: 127.0.0.1:0
shutdown: 30s
store: ` + store + `
attachments: {dir: ` + disk + s3 + `}
agents:
  - {id: helper, kind: openai, base_url: AGENT/v1, api_key: ` + apiKey + `, model: m, system_prompt: "", notes: []}
`
}

// imageMessage returns a message to the bot with an image of a cat.
func (h *harness) imageMessage(text string) (m slacktest.Message, body []byte) {
	h.slack.AddFile(slacktest.File{ID: "F0CAT", Name: "cat.png", MimeType: "image/png", Content: []byte(catPNG)})
	m = h.newMessage("<@" + slacktest.BotUser + "> " + text)
	return m, inner(fmt.Sprintf(`{"type":"message","subtype":"file_share","channel_type":"channel","channel":%q,"user":%q,"text":%q,"ts":%q,"event_ts":%q,
		"files":[{"id":"F0CAT","name":"cat.png","mimetype":"image/png","size":%d}]}`, m.Channel, m.User, m.Text, m.TS, m.TS, len(catPNG)))
}

// images returns the number of images of the cat in the agent's input.
func (a *modelRequest) images() (cats int) {
	for _, m := range a.messages {
		cats += strings.Count(m.Content, "data:image/png;base64,"+base64.StdEncoding.EncodeToString([]byte(catPNG)))
	}
	return cats
}

// TestCopyIsReadByAnotherNode: one node stores an image, and a node with another disk answers
// a later question about it.
func TestCopyIsReadByAnotherNode(t *testing.T) {
	t.Parallel()
	bucket := s3test.Start()
	t.Cleanup(bucket.Close)
	s3 := fmt.Sprintf(`, s3: {endpoint: "%s", bucket: %s, region: %s, access_key: %s, secret_key: %s}`,
		bucket.URL, s3test.Bucket, s3test.Region, s3test.AccessKey, s3Secret)
	for name, place := range map[string]struct {
		store func(t *testing.T) string
		s3    string
	}{
		"in the store": {func(t *testing.T) string { return postgrestest.URL(t) }, ""},
		"in a bucket":  {func(*testing.T) string { return "sqlite:data/parley.db" }, s3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := place.store(t)
			h := open(t, plan{files: map[string]string{"parley.yaml": attachmentsConfig(store, "data/first", place.s3)}})
			m, body := h.imageMessage("who is this?")
			h.accept(body)
			if asked := h.answerNext(replyWith("A cat.")); asked.images() != 1 {
				t.Fatalf("the agent was asked %q\n%s", asked.messages, h.log)
			}
			h.posts(1)
			if err := h.stop(); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(h.dir, "parley.yaml"), h.places.Replace(attachmentsConfig(store, "data/second", place.s3)))
			if err := h.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
				t.Fatal(err)
			}
			again := h.newMessage("<@" + slacktest.BotUser + "> and its colour?")
			again.ThreadTS = m.TS
			h.accept(again.Event())
			if asked := h.answerNext(replyWith("Black.")); asked.images() != 1 || len(asked.messages) < 3 {
				t.Errorf("the agent was asked %q\n%s", asked.messages, h.log)
			}
			h.posts(2)
			for _, disk := range []string{"first", "second"} {
				if found, _ := filepath.Glob(filepath.Join(h.dir, "data", disk, "*", "*")); len(found) != 0 {
					t.Errorf("on the disk: %q", found)
				}
			}
			if place.s3 != "" && len(bucket.Keys()) != 1 {
				t.Errorf("in the bucket: %q", bucket.Keys())
			}
			if strings.Contains(h.log.String(), s3Secret) {
				t.Errorf("the log contains the bucket's secret:\n%s", h.log)
			}
		})
	}
}

// TestNextTurnCopiesAgain: a bucket that is away, or that has lost a copy, costs a turn its file,
// and the next turn shows it.
func TestNextTurnCopiesAgain(t *testing.T) {
	t.Parallel()
	away := s3test.Fault{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
	lost := s3test.Fault{Status: http.StatusNotFound, Code: "NoSuchKey"}
	for name, c := range map[string]struct {
		method string
		faults []s3test.Fault
	}{
		"away": {http.MethodPut, []s3test.Fault{away, away, away}}, // attempts of one copy
		"lost": {http.MethodGet, []s3test.Fault{lost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket := s3test.Start()
			t.Cleanup(bucket.Close)
			h := open(t, plan{files: map[string]string{"parley.yaml": attachmentsConfig("sqlite:data/parley.db", "data/files",
				fmt.Sprintf(`, s3: {endpoint: "%s", bucket: %s, region: %s, access_key: %s, secret_key: %s}`,
					bucket.URL, s3test.Bucket, s3test.Region, s3test.AccessKey, s3Secret))}})
			bucket.Script(c.method, c.faults...)
			m, body := h.imageMessage("who is this?")
			h.accept(body)
			if asked := h.answerNext(replyWith("I can't see it.")); asked.images() != 0 {
				t.Errorf("the agent was asked %q", asked.messages)
			}
			h.posts(1)
			h.follow(m, "and now?")
			if asked := h.answerNext(replyWith("A cat.")); asked.images() != 1 {
				t.Errorf("the agent was asked %q\n%s", asked.messages, h.log)
			}
			h.posts(2)
		})
	}
}

// TestMissingCopy: the agent answers without the copy, and the log has a warning for the
// operator.
func TestMissingCopy(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(h *harness){
		"elsewhere": func(h *harness) {
			write(h.t, filepath.Join(h.dir, "parley.yaml"), h.places.Replace(attachmentsConfig("sqlite:data/parley.db", "data/files",
				`, s3: {endpoint: "http://127.0.0.1:1", bucket: another, region: x, access_key: a, secret_key: `+s3Secret+`}`)))
		},
		"damaged": func(h *harness) {
			found, err := filepath.Glob(filepath.Join(h.dir, "data/files/*/*"))
			if err != nil || len(found) != 1 {
				h.t.Fatalf("%q, %v", found, err)
			}
			if err := os.WriteFile(found[0], []byte(catPNG+"!"), 0o600); err != nil {
				h.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{files: map[string]string{"parley.yaml": attachmentsConfig("sqlite:data/parley.db", "data/files", "")}})
			m, body := h.imageMessage("who is this?")
			h.accept(body)
			h.answerNext(replyWith("A cat."))
			h.posts(1)
			lose(h)
			h.restart()
			again := h.newMessage("<@" + slacktest.BotUser + "> and its colour?")
			again.ThreadTS = m.TS
			h.accept(again.Event())
			if asked := h.answerNext(replyWith("I can't see it.")); asked.images() != 0 || !strings.Contains(asked.messages[0].Content, "cat.png") {
				t.Errorf("the agent was asked %q", asked.messages)
			}
			h.posts(2)
			if log := h.log.String(); h.warnings("copy") == 0 || !strings.Contains(log, name) {
				t.Errorf("the log has no warning about the copy:\n%s", log)
			}
		})
	}
}

// TestDocumentOfTheThread: an agent with documents gets the PDF of an earlier message of the thread, and any
// other agent its name.
func TestDocumentOfTheThread(t *testing.T) {
	t.Parallel()
	const pdf = "%PDF-1.7 the plan"
	for setting, want := range map[string]string{
		"documents: [pdf]": "data:application/pdf;base64," + base64.StdEncoding.EncodeToString([]byte(pdf)),
		"documents: []":    "(file: plan.pdf)",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{helper: setting})
			h.slack.AddFile(slacktest.File{ID: "F0PLAN", Name: "plan.pdf", MimeType: "application/pdf", Content: []byte(pdf)})
			m := h.newMessage("here is the plan")
			h.accept(inner(fmt.Sprintf(`{"type":"message","subtype":"file_share","channel_type":"channel","channel":%q,"user":%q,"text":%q,"ts":%q,"event_ts":%q,
				"files":[{"id":"F0PLAN","name":"plan.pdf","mimetype":"application/pdf","size":%d}]}`, m.Channel, m.User, m.Text, m.TS, m.TS, len(pdf))))
			again := h.newMessage("<@" + slacktest.BotUser + "> is it good?")
			again.ThreadTS = m.TS
			h.accept(again.Mention())
			asked := h.answerNext(replyWith("Yes."))
			if all := fmt.Sprint(asked.messages); !strings.Contains(all, want) || strings.Contains(all, "base64") != strings.Contains(want, "base64") {
				t.Errorf("the agent was asked %q, want %q", asked.messages, want)
			}
			h.posts(1)
		})
	}
}
