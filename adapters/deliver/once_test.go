package deliver_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
)

// onceBoard is a board that posts a key once, and can tell nothing about its posts.
type onceBoard struct{ b *board }

var _ adapters.PartialFormatter = onceBoard{}
var _ adapters.Editor = onceBoard{}

func (o onceBoard) Format(text string, mentions []string) []string { return o.b.Format(text, mentions) }

func (o onceBoard) FormatPartial(text string, mentions []string, done bool) (shown, rest string, full bool) {
	return o.b.FormatPartial(text, mentions, done)
}

func (o onceBoard) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	return o.b.Address(thread, answered)
}

func (o onceBoard) Send(ctx context.Context, post adapters.Post) (id string, err error) {
	known := func() int { return slices.IndexFunc(o.b.posts, func(p *pinned) bool { return p.key == post.Key }) }
	err = o.b.do(ctx, "send", post.Text, func() error { // may come after the return
		if known() < 0 {
			o.b.pin(post.Key, post, false)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	err = o.b.locked(func() error {
		id = o.b.posts[known()].id
		return nil
	})
	return id, err
}

func (o onceBoard) Edit(ctx context.Context, id string, post adapters.Post) error {
	return o.b.Edit(ctx, id, post)
}

func (o onceBoard) Remove(ctx context.Context, id string, post adapters.Post) error {
	return o.b.Remove(ctx, id, post)
}

// TestOnce proves that a post whose platform does a key once is repeated after any failure, also that of a live preview, and also if
// the policy holds posts with an unknown outcome. No platform is asked for it, and no text is there twice.
func TestOnce(t *testing.T) {
	for name, c := range map[string]struct {
		faults  []fault
		preview adapters.Preview
		killed  bool
	}{
		"arrived":                    {[]fault{arrived, arrived, arrived, arrived, arrived}, adapters.PreviewOff, false},
		"lost":                       {[]fault{lost, lost, lost, lost, lost}, adapters.PreviewOff, false},
		"late":                       {[]fault{arriveLate, lost}, adapters.PreviewOff, false},
		"preview that has arrived":   {[]fault{arrived, lost}, adapters.PreviewEdit, false},
		"preview that arrives late":  {[]fault{arriveLate}, adapters.PreviewEdit, false},
		"killed after the effect":    {[]fault{{failure: adapters.Unclear, effect: time.Second, takes: time.Hour}}, adapters.PreviewOff, true},
		"preview killed, and posted": {[]fault{{failure: adapters.Unclear, effect: time.Second, takes: time.Hour}}, adapters.PreviewEdit, true},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(h *harness) {
				h.platform.Sender, h.platform.Unknown = onceBoard{h.board}, func(*outbox.Delivery) string { return "hold" }
				h.platform.Limits.Once, h.platform.Limits.Preview, h.platform.Limits.Sign = true, c.preview, false
				h.board.faults["send"] = c.faults
				h.answer = says(2*time.Second, "one ", "two ", "three")
				h.ask("t")
				if c.killed {
					advance(8 * time.Second)
					h.kill()
					h.start()
				}
				h.settles("one two three")
				if calls := strings.Join(h.board.did(""), "\n"); strings.Contains(calls, "find") {
					t.Error(calls)
				}
			})
		})
	}
}
