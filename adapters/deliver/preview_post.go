package deliver

import (
	"parley/ingest/journal/outbox"
	"parley/ingest/work"
)

// previewPost is one post of a growing answer, or a sign of work. Of a sign, only d, calling and
// clean are used.
type previewPost struct {
	d *outbox.Delivery // of its first text; nil until it is posted. SendBy bounds the last call
	// source is the agent's text from the beginning of this post.
	source string
	// calling is held during a call about the post. It guards the fields below.
	calling turnstile
	id      string // the platform's
	shown   string // the text of the post
	clean   bool   // the outcome of every call is known, so shown is certain
	open    bool   // the post is a stream that continues
	own     bool   // this attempt's preview has posted it, and not an earlier one
}

// turnstile is a mutex that may be held during calls.
type turnstile chan struct{}

func (t turnstile) enter() { t <- struct{}{} }
func (t turnstile) leave() { <-t }

func newPreviewPost(source string) *previewPost {
	return &previewPost{source: source, calling: make(turnstile, 1)}
}

// postKey is the key of a claim's slot: the post of a preview, by the id of its
// delivery, or of the sign of work of a run. Without it, the text of the preview's post
// is unknown, and is stated again.
type postKey struct {
	preview int64
	signed  string
}

// previewSlot returns the slot of the post of a preview.
func previewSlot(id int64) work.Slot[*previewPost] {
	return work.Slot[*previewPost]{Key: postKey{preview: id}}
}

// postSlot returns the slot of the post that a delivery replaces or removes.
func postSlot(d *outbox.Delivery) work.Slot[*previewPost] {
	switch {
	case d.Kind == outbox.KindUnsign:
		return work.Slot[*previewPost]{Key: postKey{signed: d.Run}}
	case d.Replaces != nil:
		return previewSlot(d.Replaces.ID)
	}
	return previewSlot(0)
}

// previewPostOf returns the post that a delivery replaces or removes, or nil if it is unknown.
// It waits for a call in progress. A stopped preview begins no other call, and no longer
// changes the post.
func previewPostOf(c *work.Claim, d *outbox.Delivery) *previewPost {
	p := postSlot(d).Get(c)
	if p != nil {
		p.calling.enter()
		p.calling.leave()
	}
	return p
}
