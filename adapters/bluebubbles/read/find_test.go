package read_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
)

// TestList checks the search for a post whose outcome is unknown: own text may be
// in attributedBody only, and neither another chat nor another person's text counts.
func TestList(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{BodyOnly: true})
	made := time.Now()
	to := adapters.Address{Channel: testapp.Nora, Place: n.Hears("a question").GUID}
	post := adapters.Post{Key: "k1", To: to, Text: " yes ", NotBefore: made}
	n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "yes"})
	n.Put(bluebubblestest.Message{Chat: testapp.Group, Text: "yes"})
	n.Put(bluebubblestest.Message{Chat: testapp.Direct, Text: "yes", CreatedAt: made.Add(-time.Hour)})
	if ids, err := n.Adapter.List(t.Context(), post); err != nil || ids != nil {
		t.Errorf("before the send: %q, %v", ids, err)
	}
	failed := n.Put(bluebubblestest.Message{Chat: testapp.Direct, Text: "yes", Error: 22})
	if ids, err := n.Adapter.List(t.Context(), post); !errors.Is(err, adapters.ErrUndelivered) || !cmp.Equal(ids, []string{failed.GUID}) {
		t.Errorf("with an undelivered message %s: %q, %v", failed.GUID, ids, err)
	}
	first := n.Put(bluebubblestest.Message{Chat: "SMS;-;" + testapp.Nora, Text: "yes"})
	second := n.Put(bluebubblestest.Message{Chat: testapp.Direct, Text: "yes\n"})
	if ids, err := n.Adapter.List(t.Context(), post); err != nil || !cmp.Equal(ids, []string{first.GUID, second.GUID}) {
		t.Errorf("after the send: %q, %v", ids, err)
	}
	file := post
	file.Text, file.File = "", &adapters.File{Name: "a.txt", Size: 1, Open: nil}
	n.Put(bluebubblestest.Message{Chat: testapp.Direct, Attachments: []bluebubblestest.Attachment{{GUID: "at_1", Name: "b.txt"}}})
	shared := n.Put(bluebubblestest.Message{Chat: testapp.Direct, Attachments: []bluebubblestest.Attachment{{GUID: "at_2", Name: "a.txt"}}})
	if ids, err := n.Adapter.List(t.Context(), file); err != nil || !cmp.Equal(ids, []string{shared.GUID}) {
		t.Errorf("a file: %q, %v", ids, err)
	}
	if text, attachment := n.Adapter.Settles(post), n.Adapter.Settles(file); text != 15*time.Second || attachment != 195*time.Second {
		t.Errorf("a text settles after %v, a file after %v", text, attachment)
	}
}
