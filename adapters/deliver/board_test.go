package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// board is a platform with edits and streams. Every call may have a fault, by the name of
// the call or by chance.
type board struct {
	mu    sync.Mutex
	posts []*pinned
	signs map[string]adapters.Address // of the calls that show them, by message
	// selfSigned says that the platform shows a sign below every message by itself.
	selfSigned bool
	told       []string
	calls      []string                // the names of the calls and their texts
	faults     map[string][]fault      // of the next calls, by name
	chance     func(does string) fault // of the other calls; nil for none
	effects    sync.WaitGroup
	limit      int           // of a post, in bytes
	closes     time.Duration // the maximum age of a stream; 0: none
	stumble    string        // a text at which FormatPartial panics, unless it is final
}

// pinned is a post on a board.
type pinned struct {
	id, key, text string
	to            adapters.Address
	stream        bool // the post began as a stream
	open, removed bool
	at            time.Time
}

func newBoard() *board {
	return &board{signs: map[string]adapters.Address{}, faults: map[string][]fault{}, limit: 100}
}

// none is the fault of a successful call.
var none = fault{failure: -1}

// do makes a call. Its fault decides whether and when f runs.
func (b *board) do(ctx context.Context, does, text string, f func() error) error {
	if ctx.Err() != nil {
		panic("a call began after its deadline")
	}
	b.mu.Lock()
	b.calls = append(b.calls, strings.TrimSpace(does+" "+text))
	fails := none
	if next := b.faults[does]; len(next) > 0 {
		fails, b.faults[does] = next[0], next[1:]
	} else if b.chance != nil {
		fails = b.chance(does)
	}
	b.mu.Unlock()
	if fails.panics {
		panic("a bug in the adapter")
	}
	unclear := &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("cut off")}
	if fails.failure == adapters.Unclear && fails.effect > 0 {
		b.effects.Go(func() {
			advance(fails.effect)
			_ = b.locked(f)
		})
	}
	if fails.takes > 0 { // see advance
		select {
		case <-ctx.Done():
			return unclear
		case <-time.After(fails.takes):
		}
	}
	switch {
	case fails.failure == none.failure:
		return b.locked(f)
	case fails.failure == adapters.Unclear && fails.effect == 0:
		_ = b.locked(f)
		return unclear
	}
	return &adapters.SendError{Failure: fails.failure, RetryAfter: fails.after, Scope: fails.scope, Err: errors.New("the platform's error")}
}

func (b *board) locked(f func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f()
}

var errRefused = &adapters.SendError{Failure: adapters.Permanent, Err: errors.New("refused")}

// pin adds a post. The caller holds the lock.
func (b *board) pin(key string, post adapters.Post, stream bool) string {
	p := &pinned{id: fmt.Sprint("p", len(b.posts)+1), key: key, text: post.Text, to: post.To, stream: stream, open: stream, at: time.Now()}
	b.posts = append(b.posts, p)
	return p.id
}

// find returns a post that was not removed; nil for none. The caller holds the lock.
func (b *board) find(id string) *pinned {
	i := slices.IndexFunc(b.posts, func(p *pinned) bool { return p.id == id && !p.removed })
	if i < 0 {
		return nil
	}
	p := b.posts[i]
	if b.closes > 0 && time.Since(p.at) >= b.closes {
		p.open = false
	}
	return p
}

func (b *board) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	return adapters.Address{Channel: "C1", Place: string(thread) + " " + answered}, nil
}

// FormatPartial ends a post at the last line end within the limit, or else at the limit.
func (b *board) FormatPartial(text string, _ []string, done bool) (shown, rest string, full bool) {
	if b.stumble != "" && !done && strings.Contains(text, b.stumble) {
		panic("a bug in the formatter")
	}
	most, least := min(len(text), b.limit), min(len(text), b.limit*3/4)
	if i := strings.IndexByte(text[least:most], '\n'); i >= 0 {
		return text[:least+i+1], text[least+i+1:], true
	}
	return text[:most], text[most:], len(text) > b.limit
}

func (b *board) Format(text string, _ []string) (texts []string) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for text != "" {
		shown, rest, full := b.FormatPartial(text, nil, true)
		texts = append(texts, shown)
		if !full {
			break
		}
		text = rest
	}
	return texts
}

func (b *board) Send(ctx context.Context, post adapters.Post) (id string, err error) {
	err = b.do(ctx, "send", post.Text, func() error { id = b.pin(post.Key, post, false); return nil })
	return id, err
}

func (b *board) Find(ctx context.Context, post adapters.Post) (id string, found bool, err error) {
	err = b.do(ctx, "find", "", func() error {
		for _, p := range b.posts {
			if p.key == post.Key && !p.removed {
				id, found = p.id, true
			}
		}
		return nil
	})
	return id, found, err
}

func (b *board) Edit(ctx context.Context, id string, post adapters.Post) error {
	return b.do(ctx, "edit", post.Text, func() error {
		p := b.find(id)
		if p == nil {
			return errRefused
		}
		p.text, p.open = post.Text, false
		return nil
	})
}

// Remove removes a post only at its own address.
func (b *board) Remove(ctx context.Context, id string, post adapters.Post) error {
	return b.do(ctx, "remove", "", func() error {
		if p := b.find(id); p != nil {
			p.removed = p.to == post.To
		}
		return nil
	})
}

func (b *board) Streams(post adapters.Post) bool { return !strings.HasPrefix(post.To.Place, "direct ") }

func (b *board) Begin(ctx context.Context, post adapters.Post) (id string, err error) {
	err = b.do(ctx, "begin", post.Text, func() error { id = b.pin("", post, true); return nil })
	return id, err
}

func (b *board) Append(ctx context.Context, id string, _ adapters.Post, text string) error {
	return b.do(ctx, "append", text, func() error { return b.stream(id, text, true) })
}

func (b *board) End(ctx context.Context, id string, _ adapters.Post, text string) error {
	return b.do(ctx, "end", text, func() error { return b.stream(id, text, false) })
}

func (b *board) stream(id, text string, open bool) error {
	p := b.find(id)
	if p == nil || !p.open {
		return errRefused
	}
	p.text, p.open = p.text+text, open
	return nil
}

func (b *board) FindStream(ctx context.Context, post adapters.Post) (ids []string, err error) {
	err = b.do(ctx, "find", "", func() error {
		for _, p := range b.posts {
			if p.key == "" && !p.removed && p.to == post.To && !p.at.Before(post.NotBefore) {
				ids = append(ids, p.id)
			}
		}
		return nil
	})
	return ids, err
}

func (b *board) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	return b.do(ctx, "sign", sign.Text, func() error { b.signs[sign.Message] = sign.To; return nil })
}

// IsSigned implements adapters.SelfSigner.
func (b *board) IsSigned(string) bool { return b.selfSigned }

// ClearWorking removes a sign only at its own address.
func (b *board) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	return b.do(ctx, "unsign", "", func() error {
		if b.signs[sign.Message] == sign.To {
			delete(b.signs, sign.Message)
		}
		return nil
	})
}

func (b *board) EphemeralAddress(to adapters.Address, _ string) adapters.Address { return to }

func (b *board) PostEphemeral(ctx context.Context, post adapters.Post) error {
	return b.do(ctx, "tell", post.Text, func() error { b.told = append(b.told, post.Asker+": "+post.Text); return nil })
}

// stands returns the posts, and everything that should not be visible.
func (b *board) stands() (texts, wrong []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.posts {
		if p.removed {
			continue
		}
		texts = append(texts, p.text)
		if b.find(p.id).open {
			wrong = append(wrong, "an open stream: "+p.text)
		}
	}
	for sign := range b.signs {
		wrong = append(wrong, "a sign on "+sign)
	}
	return texts, wrong
}

// did returns the calls whose text has the prefix.
func (b *board) did(what string) (calls []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, call := range b.calls {
		if strings.HasPrefix(call, what) {
			calls = append(calls, call)
		}
	}
	return calls
}

var (
	_ adapters.Editor           = (*board)(nil)
	_ adapters.PartialFormatter = (*board)(nil)
	_ adapters.Streamer         = (*board)(nil)
	_ adapters.StreamFinder     = (*board)(nil)
	_ adapters.WorkingIndicator = (*board)(nil)
	_ adapters.Ephemeral        = (*board)(nil)
)
