package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"parley/adapters/slack/slacktest"
)

// said is the event by which Slack tells of a new message.
func (m *message) said() []byte { return m.slack().Event() }

// mentioned is the other event by which Slack tells of the same message, where
// it mentions the bot.
func (m *message) mentioned() []byte { return m.slack().Mention() }

func (m *message) slack() slacktest.Message {
	event := slacktest.Message{Channel: m.place.channel, User: m.sender, Text: m.text(0), TS: m.ts}
	if m.direct() {
		event.ChannelType = "im"
	}
	if m.place.root != m.ts {
		event.ThreadTS = m.place.root
	}
	return event
}

// edited is the event of the message's change to a revision.
// https://docs.slack.dev/reference/events/message/message_changed
func (m *message) edited(revision int, ts string) []byte {
	now := m.state(revision)
	now["edited"] = map[string]any{"user": m.sender, "ts": ts}
	return callback(ts, map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": m.place.channel,
		"ts": ts, "event_ts": ts, "message": now, "previous_message": m.state(revision - 1),
	})
}

// removed is the event of the message's delete.
// https://docs.slack.dev/reference/events/message/message_deleted
func (m *message) removed(ts string) []byte {
	return callback(ts, map[string]any{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": m.place.channel,
		"ts": ts, "event_ts": ts, "deleted_ts": m.ts, "previous_message": m.state(len(m.revisions) - 1),
	})
}

// reacted is the event of a reaction to the message.
// https://docs.slack.dev/reference/events/reaction_added
func (m *message) reacted(ts string) []byte {
	return callback(ts, map[string]any{
		"type": "reaction_added", "user": speaker(m.id + 1), "reaction": "eyes", "item_user": m.sender, "event_ts": ts,
		"item": map[string]any{"type": "message", "channel": m.place.channel, "ts": m.ts},
	})
}

// state is the message as it stands inside the events about it.
func (m *message) state(revision int) map[string]any {
	state := map[string]any{"type": "message", "user": m.sender, "team": slacktest.Team, "ts": m.ts, "text": m.text(revision)}
	if m.place.root != "" && m.place.root != m.ts {
		state["thread_ts"] = m.place.root
	}
	return state
}

// callback puts an event into the frame of the Events API.
func callback(ts string, event map[string]any) []byte {
	body, err := json.Marshal(map[string]any{
		"type": "event_callback", "team_id": slacktest.Team, "api_app_id": slacktest.App, "event_id": "Ev" + ts, "event": event,
		"authorizations": []map[string]any{{"team_id": slacktest.Team, "user_id": slacktest.BotUser, "is_bot": true}},
	})
	if err != nil {
		panic(err) // texts, maps and truth values always encode
	}
	return body
}

// slackPatience is how long Slack waits for an answer.
// https://docs.slack.dev/apis/events-api/#responding
const slackPatience = 3 * time.Second

// signed is a request of Slack's as it goes over the wire. From the second
// attempt on it says so, as Slack does.
func signed(address string, body []byte, attempt int, now time.Time) []byte {
	return signedTo(hookPath, address, body, attempt, now)
}

// signedTo is signed for the hook of one of several workspaces.
func signedTo(path, address string, body []byte, attempt int, now time.Time) []byte {
	header := slacktest.Sign(signingSecret, now, body)
	header.Set("Content-Type", "application/json")
	if attempt > 0 {
		header.Set("X-Slack-Retry-Num", fmt.Sprint(attempt))
		header.Set("X-Slack-Retry-Reason", "http_timeout")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", path, address, len(body))
	_ = header.Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// line is one connection of Slack's to the hook, kept open between requests and
// used by one goroutine. It is written by hand because a client that costs as
// much as the daemon would measure itself.
type line struct {
	address string
	conn    net.Conn
	reader  *bufio.Reader
}

// post sends a request and returns the answer's status; after an error nobody
// knows what became of it.
func (l *line) post(request []byte) (status int, err error) {
	if l.conn == nil {
		if l.conn, err = net.DialTimeout("tcp", l.address, slackPatience); err != nil {
			l.conn = nil
			return 0, err
		}
		l.reader = bufio.NewReader(l.conn)
	}
	status, keep, err := l.exchange(request)
	if !keep {
		l.close()
	}
	return status, err
}

func (l *line) exchange(request []byte) (status int, keep bool, err error) {
	if err := l.conn.SetDeadline(time.Now().Add(slackPatience)); err != nil {
		return 0, false, err
	}
	if _, err := l.conn.Write(request); err != nil {
		return 0, false, err
	}
	response, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		return 0, false, err
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, false, err
	}
	return response.StatusCode, !response.Close, nil
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close() // it was read to its end, or is broken
		l.conn = nil
	}
}
