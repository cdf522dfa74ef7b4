package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// Sign returns the headers with which Slack signs a body: version v0, an HMAC-SHA256 over
// timestamp and body.
// https://docs.slack.dev/authentication/verifying-requests-from-slack
func Sign(secret string, timestamp time.Time, body []byte) http.Header {
	seconds := strconv.FormatInt(timestamp.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + seconds + ":"))
	mac.Write(body)
	header := http.Header{}
	header.Set("X-Slack-Request-Timestamp", seconds)
	header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return header
}

// NewRequest returns the signed request with which Slack delivers a JSON body.
func NewRequest(ctx context.Context, url, secret string, timestamp time.Time, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("create the hook's request: %w", err)
	}
	request.Header = Sign(secret, timestamp, body)
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// Message describes a message for an event of the Events API. Empty fields get defaults: Team
// and App the constants of this package, ChannelType "channel", and EventID a value from
// channel and ts.
type Message struct {
	Team, App            string
	Channel, ChannelType string
	User, Text           string
	TS                   string
	ThreadTS             string // the root, for a reply
	ParentUser           string // the author of the root, for a reply; Say sets it
	EventID              string
}

// inner is the inner event. Its members have Slack's order.
type inner struct {
	Type        string `json:"type"`
	User        string `json:"user"`
	TS          string `json:"ts"`
	Text        string `json:"text"`
	Team        string `json:"team"`
	ThreadTS    string `json:"thread_ts,omitempty"`
	ParentUser  string `json:"parent_user_id,omitempty"`
	Channel     string `json:"channel"`
	EventTS     string `json:"event_ts"`
	ChannelType string `json:"channel_type,omitempty"`
}

// Event returns the event_callback of type message.
func (m Message) Event() []byte {
	m.fill("Ev")
	return m.callback(inner{Type: "message", ChannelType: m.ChannelType})
}

// Mention returns the event_callback of type app_mention. It has no channel type and an event
// id of its own.
func (m Message) Mention() []byte {
	m.fill("EvM")
	return m.callback(inner{Type: "app_mention"})
}

func (m *Message) fill(prefix string) {
	setDefault(&m.Team, Team)
	setDefault(&m.App, App)
	setDefault(&m.ChannelType, "channel")
	setDefault(&m.EventID, prefix+m.Channel+m.TS)
}

func (m Message) callback(event inner) []byte {
	event.User, event.Text, event.Team = m.User, m.Text, m.Team
	event.Channel, event.TS, event.EventTS, event.ThreadTS, event.ParentUser = m.Channel, m.TS, m.TS, m.ThreadTS, m.ParentUser
	seconds, _ := strconv.ParseFloat(m.TS, 64)
	return wrap(event, m.Team, m.App, m.EventID, int64(seconds))
}

// Push sends the app an event in an event_callback: to the hook if there is one, else over a
// socket. It does not wait for the delivery. The envelopes of one socket leave in the order
// of their Push.
func (s *Server) Push(inner []byte) Delivery {
	return s.PushRaw(EventsAPI, Callback(inner, "Ev"+strings.ToUpper(strings.ReplaceAll(uuid.NewString(), "-", ""))))
}

// Callback returns the event_callback of an event.
// https://docs.slack.dev/apis/events-api/#callback-field
func Callback(inner []byte, eventID string) []byte {
	return wrap(json.RawMessage(inner), Team, App, eventID, time.Now().Unix())
}

func wrap(inner any, team, app, eventID string, at int64) []byte {
	raw, _ := event.JSON(map[string]any{ // strings, numbers and raw JSON always encode
		"type": "event_callback", "team_id": team, "api_app_id": app, "event_id": eventID,
		"event_time": at, "event": inner,
		"authorizations": []map[string]any{{"team_id": team, "user_id": BotUser, "is_bot": true}},
	})
	return raw
}

// Say stores a person's message in its channel, at its TS or the channel's next one. It sends
// the app a message event and, if the text mentions the bot outside a direct message, an
// app_mention. It returns the message with its TS.
func (s *Server) Say(m Message) (Message, []Delivery) {
	m.TS = s.Put(Post{Channel: m.Channel, TS: m.TS, ThreadTS: m.ThreadTS, User: m.User, Text: m.Text}).TS
	m.ParentUser = s.channel(m.Channel).rootUser(m.TS, m.ThreadTS)
	deliveries := []Delivery{s.PushRaw(EventsAPI, m.Event())}
	mentioned := strings.Contains(m.Text, "<@"+s.options.BotUser+">") || strings.Contains(m.Text, "<@"+s.options.BotUser+"|")
	if mentioned && m.ChannelType != "im" {
		deliveries = append(deliveries, s.PushRaw(EventsAPI, m.Mention()))
	}
	return m, deliveries
}
