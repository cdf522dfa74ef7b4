package operator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/config"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/outbox"
	"parley/ingest/wake"
)

var deliveryRoutes = []Route{
	{Pattern: "GET deliveries", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("before", "limit", "state"); err != nil {
			return nil, err
		}
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.Deliveries(c.Context(), c.By, c.Query("state"), page)
	}},
	{Pattern: "GET deliveries/{id}", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		id, err := c.ID("id")
		if err != nil {
			return nil, err
		}
		return s.Delivery(c.Context(), c.By, id)
	}},
	{Pattern: "POST deliveries/{id}/resend", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var how struct {
			Force bool `json:"force"`
		}
		id, err := c.IDAnd("id", &how)
		if err != nil {
			return nil, err
		}
		return s.ResendDelivery(c.Context(), c.Write(""), id, how.Force)
	}},
	{Pattern: "POST deliveries/{id}/confirm", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var seen struct {
			Post string `json:"post"`
		}
		id, err := c.IDAnd("id", &seen)
		if err != nil {
			return nil, err
		}
		return s.ConfirmDelivery(c.Context(), c.Write(""), id, seen.Post)
	}},
	{Pattern: "POST deliveries/{id}/drop", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		id, err := c.ID("id")
		if err != nil {
			return nil, err
		}
		return s.DropDelivery(c.Context(), c.Write(""), id)
	}},
}

// Delivery is one call that puts a part of a reply on a platform.
type Delivery struct {
	ID        int64  `json:"id"`
	Workspace string `json:"workspace"`
	Thread    string `json:"thread"` // key of its thread
	Channel   string `json:"channel"`
	// ChannelName is empty if it is not known or if the caller may not read the thread.
	ChannelName string    `json:"channel_name,omitempty"`
	Run         string    `json:"run"`
	Kind        string    `json:"kind"`
	Part        int64     `json:"part"`  // of the reply, from 1; 0: it carries no part
	Parts       int64     `json:"parts"` // of the reply
	State       string    `json:"state"`
	Attempts    int64     `json:"attempts"`
	DueAt       time.Time `json:"due_at"` // when a worker looks at it next; if it has ended, about when
	CreatedAt   time.Time `json:"created_at"`
	Error       string    `json:"error"`
	PlatformID  string    `json:"platform_id"`
	Link        string    `json:"link,omitempty"` // at which people see the post; empty for none, and in lists
	// Text is the text of the post; nil if it was removed or may not be shown, in lists, and after it was sent.
	Text *string `json:"text,omitempty"`
	// Card is the card beside the text; nil for none, and where Text is.
	Card *card.View `json:"card,omitempty"`
}

// Deliveries returns a page of the deliveries in some states, which are separated by commas, the newest first.
// No state means all of them.
func (s *Service) Deliveries(ctx context.Context, by Caller, states string, page Page) (List[Delivery], error) {
	before, err := page.Row()
	if err != nil {
		return List[Delivery]{}, err
	}
	names := strings.FieldsFunc(states, func(c rune) bool { return c == ',' || c == ' ' })
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if !slices.Contains(listing.DeliveryStates(), name) {
			return List[Delivery]{}, event.FieldErrors{{Field: "state", Message: "must be one or more of " + strings.Join(listing.DeliveryStates(), ", ")}}
		}
	}
	rows, err := s.Journal.Listing.Deliveries(ctx, names, before, page.Limit)
	if err != nil {
		return List[Delivery]{}, err
	}
	name, end := s.ChannelNames(ctx, by)
	defer end()
	items := make([]Delivery, len(rows))
	for i, r := range rows {
		items[i] = deliveryOf(r)
		items[i].ChannelName = name(r.Workspace, r.Channel, !r.Private)
	}
	return listOf(items, len(rows) == page.Limit, func(d Delivery) string { return strconv.FormatInt(d.ID, 10) }), nil
}

// kinds tell what each kind of delivery does.
var kinds = map[outbox.Kind]string{
	outbox.KindPost: "post", outbox.KindPreview: "preview of an answer", outbox.KindRemove: "removal of a preview", outbox.KindClose: "removal of buttons", outbox.KindTell: "note to the asker alone",
	outbox.KindCopy: "copy to a program", outbox.KindUnsign: "removal of the working sign", outbox.KindReact: "reaction", outbox.KindState: "post about a run", outbox.KindRestate: "change of that post",
}

// KindWords tells what a kind of delivery does.
func KindWords(kind string) string { return cmp.Or(kinds[outbox.Kind(kind)], kind) }

func deliveryOf(d listing.Delivery) Delivery {
	return Delivery{
		ID: d.ID, Workspace: d.Workspace, Thread: string(d.Thread), Channel: d.Channel, Run: d.Run, Kind: d.Kind, Part: max(d.Part+1, 0), Parts: d.Parts,
		State: d.State, Attempts: d.Attempts, DueAt: d.DueAt, CreatedAt: d.CreatedAt, Error: d.Error, PlatformID: d.PlatformID,
	}
}

// link returns the address at which people see the post of a delivery; empty for none.
func (s *Service) link(ctx context.Context, d listing.Delivery) string {
	if s.Live == nil || s.Live.Outbox == nil || d.PlatformID == "" {
		return ""
	}
	return s.Live.Outbox.Link(ctx, d.Workspace, d.Thread, d.PlatformID)
}

// Delivery returns a delivery. If its post is not known to be on the platform, a caller who may read it gets its text
// and its card.
func (s *Service) Delivery(ctx context.Context, by Caller, id int64) (Delivery, error) {
	row, err := s.Journal.Listing.Delivery(ctx, id)
	if err != nil {
		return Delivery{}, err
	}
	shown := deliveryOf(row)
	shown.Link = s.link(ctx, row)
	shown.ChannelName = s.channelName(ctx, by, row.Workspace, row.Channel, !row.Private)
	if !by.Reads(!row.Private) {
		return shown, nil
	}
	held, err := s.Journal.Outbox.HeldDelivery(ctx, id)
	if err != nil {
		return shown, nil
	}
	if shown.Card = held.Post.Card; held.Post.Text != "" {
		shown.Text = &held.Post.Text
	}
	return shown, nil
}

// resendWait bounds how long ResendDelivery waits for the result of the call.
const resendWait = 15 * time.Second

// lookEvery is the pause between two looks at the delivery.
const lookEvery = 100 * time.Millisecond

// ResendDelivery sends a delivery again that is unknown or failed, and waits a while for the result. Without
// force it looks at the platform first: if the post is there, it refuses and marks the delivery as sent.
func (s *Service) ResendDelivery(ctx context.Context, w Write, id int64, force bool) (Delivery, error) {
	if err := s.needsLive("the sending of a delivery"); err != nil {
		return Delivery{}, err
	}
	return audited(ctx, s, w, "delivery.resend", strconv.FormatInt(id, 10), func(ctx context.Context) (Delivery, error) {
		err := s.Live.Outbox.ResendHeld(ctx, id, force)
		if sent, ok := errors.AsType[outbox.SentError](err); ok {
			return Delivery{}, Fail(http.StatusConflict, "there", sent.Error())
		}
		if err != nil && !errors.Is(err, outbox.ErrOpen) { // somebody sends it again already
			return Delivery{}, refusal(err)
		}
		for end := s.Now().Add(resendWait); ; {
			row, err := s.Journal.Listing.Delivery(ctx, id)
			if err != nil || !isOpen(row.State) || s.Now().After(end) || !wake.After(ctx, lookEvery) {
				return deliveryOf(row), err
			}
		}
	})
}

func isOpen(state string) bool {
	return state == string(outbox.Pending) || state == string(outbox.Sending)
}

// ConfirmDelivery records the post of a delivery that is unknown or failed: the operator has seen it on the platform.
func (s *Service) ConfirmDelivery(ctx context.Context, w Write, id int64, post string) (Delivery, error) {
	if post == "" || len(post) > maxKey {
		return Delivery{}, event.FieldErrors{{Field: "post", Message: "must be the platform's id of the post"}}
	}
	return s.settle(ctx, w, "delivery.confirm", id, func(ctx context.Context) error { return s.Journal.Outbox.ConfirmDelivery(ctx, id, post) })
}

// DropDelivery gives up a delivery that is unknown or failed, and the parts of its reply that failed with it.
func (s *Service) DropDelivery(ctx context.Context, w Write, id int64) (Delivery, error) {
	return s.settle(ctx, w, "delivery.drop", id, func(ctx context.Context) error { return s.Journal.Outbox.DropDelivery(ctx, id) })
}

// settle does a change of a delivery and returns the delivery.
func (s *Service) settle(ctx context.Context, w Write, what string, id int64, change func(context.Context) error) (Delivery, error) {
	return audited(ctx, s, w, what, strconv.FormatInt(id, 10), func(ctx context.Context) (Delivery, error) {
		if err := change(ctx); err != nil {
			return Delivery{}, refusal(err)
		}
		row, err := s.Journal.Listing.Delivery(ctx, id)
		return deliveryOf(row), err
	})
}

// Deliveries returns a page of deliveries, the newest first.
func (c *Client) Deliveries(ctx context.Context, query url.Values) (List[Delivery], error) {
	return Get[List[Delivery]](ctx, c, "deliveries", query)
}

// Delivery returns a delivery with its text.
func (c *Client) Delivery(ctx context.Context, id int64) (Delivery, error) {
	return Get[Delivery](ctx, c, "deliveries/"+strconv.FormatInt(id, 10), nil)
}

// ChangeDelivery asks for a change of a delivery: resend, confirm or drop, with its body.
func (c *Client) ChangeDelivery(ctx context.Context, id int64, change string, body any) (Delivery, error) {
	return Post[Delivery](ctx, c, "deliveries/"+strconv.FormatInt(id, 10)+"/"+change, body)
}
