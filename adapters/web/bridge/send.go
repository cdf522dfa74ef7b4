package bridge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/emoji"
	"parley/adapters/httpcall"
	"parley/adapters/markdown"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/trace"
)

const (
	// maxText bounds the content of a post, in characters.
	maxText = 32_000
	// maxFile bounds a file of a post, and maxAnswer the program's answer, in bytes.
	maxFile, maxAnswer = 20 << 20, 64 << 10
	// previewEvery is the shortest time between two changes of a live preview.
	previewEvery = time.Second
	// maxButtons and maxLabel bound the buttons of a post and the characters of a label.
	maxButtons, maxLabel = 25, 80
	// maxSign bounds the text of a sign of work, in characters.
	maxSign = 200
)

// The types of our requests.
const (
	typePost    = "post"
	typeRemove  = "remove"
	typeWorking = "working"
	typeReact   = "react"
)

// place is the form of an Address.Place.
type place struct {
	Thread         string          `json:"thread,omitempty"`
	InReplyTo      string          `json:"in_reply_to,omitempty"`
	DispatchType   json.RawMessage `json:"dispatch_type,omitempty"`
	DispatchConfig json.RawMessage `json:"dispatch_config,omitempty"`
}

// String returns the text of a place; empty for the channel itself.
func (p place) String() string {
	raw, _ := json.Marshal(p) // texts and JSON always encode
	if string(raw) == "{}" {
		return ""
	}
	return string(raw)
}

func readPlace(text string) (p place) {
	_ = json.Unmarshal([]byte(cmp.Or(text, "{}")), &p) // we have written it
	return p
}

// outgoing is the body of a request of ours.
type outgoing struct {
	Type    string `json:"type"`
	ID      string `json:"id,omitempty"`
	Channel string `json:"channel,omitempty"`
	place
	Content *string    `json:"content,omitempty"`
	Asker   string     `json:"asker,omitempty"`
	Buttons []button   `json:"buttons,omitempty"`
	Card    *card.View `json:"card,omitempty"`
	File    *file      `json:"file,omitempty"`
	Growing bool       `json:"growing,omitempty"`
	Message string     `json:"message,omitempty"`
	Emoji   string     `json:"emoji,omitempty"`
	On      *bool      `json:"on,omitempty"`
	Text    string     `json:"text,omitempty"`
}

type button struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

type file struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Data     []byte `json:"data"` // base64 in JSON
}

// Limits implements adapters.Adapter.
func (a *Adapter) Limits() adapters.Limits {
	l := adapters.Limits{PostRate: a.config.PostRate, Once: true, Timeout: a.config.Timeout, Preview: adapters.PreviewOff, Sign: a.config.Working, SignText: maxSign}
	if a.config.Edits && a.config.Format == FormatMarkdown {
		l.Preview, l.PreviewEvery = adapters.PreviewEdit, previewEvery
	}
	return l
}

// Format implements adapters.Sender.
func (a *Adapter) Format(text string, mentions []string) []string {
	if a.config.Format == FormatMarkdown {
		return adapters.FormatWhole(Editing{a}, text, mentions)
	}
	return markdown.Format(text, markdown.Plain, maxText)
}

// FormatPartial implements adapters.PartialFormatter.
func (Editing) FormatPartial(text string, mentions []string, done bool) (shown, rest string, full bool) {
	return markdown.FormatPartial(text, markdown.PartialOptions{Limit: maxText, Characters: true, Mentions: mentions, Done: done})
}

// FormatCard implements adapters.CardSender. The content describes the card for a program that shows no cards.
func (a *Adapter) FormatCard(v card.View) (list []adapters.CardPost) {
	for i, text := range a.Format(v.Markdown(), nil) {
		post := adapters.CardPost{Text: text}
		if i == 0 {
			post.Card = v
		}
		list = append(list, post)
	}
	return list
}

// Address implements adapters.Sender.
func (a *Adapter) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	channel, id, ok := readThread(a.workspace, thread)
	if !ok {
		return adapters.Address{}, fmt.Errorf("%q is not a thread of the program of workspace %s", thread, a.workspace)
	}
	return adapters.Address{Channel: channel, Place: place{Thread: id, InReplyTo: internal(answered)}.String()}, nil
}

// Dispatch implements adapters.Dispatcher.
func (*Adapter) Dispatch(to adapters.Address, answered event.Metadata) adapters.Address {
	p := readPlace(to.Place)
	for _, extra := range answered.Extra {
		switch extra.Key {
		case event.DispatchType:
			p.DispatchType = extra.Value
		case event.DispatchConfig:
			p.DispatchConfig = extra.Value
		}
	}
	to.Place = p.String()
	return to
}

// ButtonLimits implements adapters.ButtonSender.
func (a *Adapter) ButtonLimits() adapters.ButtonLimits {
	if !a.config.Buttons {
		return adapters.ButtonLimits{}
	}
	return adapters.ButtonLimits{Buttons: maxButtons, Label: maxLabel, Text: maxText}
}

// Send implements adapters.Sender. The program does a key once. Its own id of the post, if it answers with one, is the post's.
func (a *Adapter) Send(ctx context.Context, post adapters.Post) (string, error) {
	out := a.outgoing(typePost, post.Key, post)
	out.Asker, out.Growing = strings.TrimPrefix(post.Asker, a.workspace+"/"), post.Growing
	if post.File != nil {
		content, err := post.File.Content(ctx, maxFile)
		if err != nil {
			return "", err
		}
		out.File = &file{post.File.Name, post.File.MimeType, content}
	}
	answer, err := a.call(ctx, out)
	if err != nil {
		return "", err
	}
	var sent struct{ ID string }
	if json.Unmarshal(answer, &sent) != nil || sent.ID == "" { // another body is not for us
		return external(post.Key), nil
	}
	if !isName(sent.ID, maxID) {
		return "", &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("the program's id of the post must have at most %d bytes and no control characters", maxID)}
	}
	return external(sent.ID), nil
}

// outgoing returns the request about a post.
func (a *Adapter) outgoing(kind, id string, post adapters.Post) outgoing {
	out := outgoing{Type: kind, ID: id, Channel: post.To.Channel, place: readPlace(post.To.Place)}
	if kind == typeRemove {
		return out
	}
	out.Content = &post.Text
	for _, b := range post.Buttons {
		out.Buttons = append(out.Buttons, button(b))
	}
	if post.Card != nil && len(post.Card.Parts) > 0 {
		out.Card = post.Card
	}
	return out
}

// errForeign is the error of a change of a message that is none of the program's.
var errForeign = adapters.Permanently("the program has no such post")

// Edit implements adapters.Editor.
func (e Editing) Edit(ctx context.Context, id string, post adapters.Post) error {
	if internal(id) == "" {
		return errForeign
	}
	_, err := e.call(ctx, e.outgoing(typeEdit, internal(id), post))
	return err
}

// Remove implements adapters.Editor.
func (e Editing) Remove(ctx context.Context, id string, post adapters.Post) error {
	if internal(id) == "" {
		return errForeign
	}
	_, err := e.call(ctx, e.outgoing(typeRemove, internal(id), post))
	if status := statusOf(err); status == http.StatusNotFound || status == http.StatusGone {
		return nil
	}
	return err
}

// ShowWorking implements adapters.WorkingIndicator.
func (a *Adapter) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	return a.sign(ctx, sign, true)
}

// ClearWorking implements adapters.WorkingIndicator.
func (a *Adapter) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	return a.sign(ctx, sign, false)
}

func (a *Adapter) sign(ctx context.Context, sign adapters.Sign, on bool) error {
	out := outgoing{Type: typeWorking, Channel: sign.To.Channel, place: readPlace(sign.To.Place), On: &on}
	if on {
		out.Text = sign.Text
	}
	_, err := a.call(ctx, out)
	return err
}

// Emoji implements adapters.Reactor.
func (a *Adapter) Emoji(given string) (string, bool) {
	if !a.config.Reactions {
		return "", false
	}
	return emoji.Picture(given)
}

// React implements adapters.Reactor.
func (a *Adapter) React(ctx context.Context, sign adapters.Sign) error {
	message := internal(sign.Message)
	if message == "" {
		return errForeign
	}
	_, err := a.call(ctx, outgoing{Type: typeReact, Channel: sign.To.Channel, place: readPlace(sign.To.Place), Message: message, Emoji: sign.Text})
	return err
}

// call makes one request of the program, and returns the body of its answer. Its errors are *adapters.SendError.
func (a *Adapter) call(ctx context.Context, out outgoing) ([]byte, error) {
	body, _ := json.Marshal(out) // texts, JSON and bytes always encode
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.config.Deliver.URL, bytes.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
		err = httpcall.SetSignature(request, a.config.Deliver.Secret.Reveal(), time.Now())
	}
	switch {
	case err != nil:
		return nil, adapters.Permanently("the address of deliver is not usable")
	case ctx.Err() != nil:
		return nil, &adapters.SendError{Failure: adapters.NotSent, Err: ctx.Err()}
	}
	trace.SetHeader(ctx, request.Header)
	answer, raw, err := httpcall.Do(a.client, request, maxAnswer)
	a.meter.Count(out.Type, answer)
	if err != nil {
		return nil, err
	}
	err = httpcall.RefusalOf(answer)
	if wait, limited := adapters.RetryAfter(err); limited {
		a.meter.Throttled(wait)
	}
	return raw, err
}
