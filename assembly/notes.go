package assembly

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/assembly/runinput"
	"parley/ingest/event"
)

// Notes are facts beside the messages of an input, for an agent that asks for them. No message contains
// them, and they are no part of the thread.
type Notes struct {
	// Now is the time in the workspace's time zone; zero for none.
	Now time.Time
	// Names are the names behind the tokens of the messages.
	Names []Name
	// Place has the names of the place of the conversation.
	Place event.Place
	// Days are the days of the thread's parts, if it spans several: the oldest first.
	Days []Day
	// Mentions are the people whom an answer may mention as @Name; none if names are no mentions.
	Mentions []Name
}

// Name is the name of a person, a group or a channel.
type Name struct {
	Token string `json:"token"`
	Name  string `json:"name"`
}

// Day is the number of messages of one day in a row.
type Day struct {
	Date     string `json:"date"` // such as 2026-11-27
	Messages int    `json:"messages"`
}

// IsEmpty reports whether there is nothing to say.
func (n Notes) IsEmpty() bool {
	return n.Now.IsZero() && len(n.Names) == 0 && len(n.Days) == 0 && len(n.Mentions) == 0 && n.Place == event.Place{}
}

// MarshalJSON returns {"now","time_zone","place","names","days","mentions"}.
func (n Notes) MarshalJSON() ([]byte, error) {
	var out struct {
		Now   string      `json:"now,omitempty"`
		Zone  string      `json:"time_zone,omitempty"`
		Place event.Place `json:"place,omitzero"`
		Names []Name      `json:"names,omitempty"`
		Days  []Day       `json:"days,omitempty"`
		Ping  []string    `json:"mentions,omitempty"` // such as @Mara
	}
	for _, p := range n.Mentions {
		out.Ping = append(out.Ping, "@"+p.Name)
	}
	if out.Place, out.Names, out.Days = n.Place, n.Names, n.Days; !n.Now.IsZero() {
		out.Now, out.Zone = n.Now.Format(time.RFC3339), n.Now.Location().String()
	}
	return json.Marshal(out)
}

// Block returns the notes as a block of text; empty if there are none. No name contains a line end or a
// bracket, and no line of a message looks like the marks, so nothing imitates or closes the block.
func (n Notes) Block() string {
	if n.IsEmpty() {
		return ""
	}
	var b strings.Builder
	b.WriteString("<!-- NOTES_START -->")
	if !n.Now.IsZero() {
		b.WriteString("\n- Now: " + n.Now.Format("Monday, 2 January 2006, 15:04") + " (" + n.Now.Location().String() + ")")
	}
	for _, named := range [...]struct{ what, name string }{
		{"Workspace", n.Place.Workspace}, {"Channel", n.Place.Channel}, {"Topic of the channel", n.Place.Topic}, {"Title of this thread", n.Place.Thread},
	} {
		if named.name != "" {
			b.WriteString("\n- " + named.what + ": " + named.name)
		}
	}
	for _, name := range n.Names {
		b.WriteString("\n- " + name.Token + " is " + name.Name)
	}
	if len(n.Mentions) > 0 {
		b.WriteString("\n- To mention somebody, write @ before the name: ")
		for i, p := range n.Mentions {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString("@" + p.Name)
		}
	}
	if len(n.Days) > 0 {
		dates := make([]string, len(n.Days))
		for i, day := range n.Days {
			count, _ := json.Marshal(day.Messages) // a number
			dates[i] = day.Date + " (" + string(count) + ")"
		}
		b.WriteString("\n- Days of this conversation's messages, oldest first: " + strings.Join(dates, ", "))
	}
	b.WriteString("\n<!-- NOTES_END -->")
	return b.String()
}

// maxTopic is the number of graphemes of a channel's topic in the notes.
const maxTopic = 400

// CleanPlace returns the names of a place, each on a line of its own, without characters that could end it.
func CleanPlace(p event.Place) event.Place {
	return event.Place{Workspace: clean(p.Workspace), Channel: clean(p.Channel), Topic: cleanTo(p.Topic, maxTopic), Thread: cleanTo(p.Thread, maxTopic)}
}

// Tokens of Slack and Discord: of a person, a group, everybody and a channel. Slack writes the names of groups
// and channels into some of them.
var token = regexp.MustCompile(`<(@!?|@&|!subteam\^|#)([A-Z0-9]{2,32})(?:\|([^<>]{0,200}))?>|<!(here|channel|everyone)>`)

// everybody are the meanings of Slack's tokens for many people.
var everybody = map[string]string{
	"here": "everybody who is active in this channel", "channel": "everybody in this channel", "everyone": "everybody in this workspace",
}

// maxNames bounds the names of one input.
const maxNames = 50

// FindNames returns the names behind the tokens of the messages, each once. A token names itself, or its name
// came with a message of the turns or is that of an author; lookup finds the name of any other token, which it
// gets without a label, such as "<@U1>" or "<#C1>".
func FindNames(messages []Message, turns []Turn, lookup func(token string) (name string, known bool)) (names []Name) {
	known := cameWith(turns)
	seen := map[string]bool{}
	for _, m := range messages {
		if m.Role == RoleAssistant {
			continue
		}
		for _, match := range token.FindAllStringSubmatch(m.Text(), -1) {
			whole, kind, id, label, many := match[0], match[1], match[2], match[3], match[4]
			if seen[whole] || len(names) == maxNames {
				continue
			}
			seen[whole] = true
			name, bare := everybody[many], "<"+strings.TrimSuffix(kind, "!")+id+">"
			switch {
			case many != "":
			case label != "":
				name = clean(strings.TrimPrefix(label, "@"))
			case known[bare] != "":
				name = known[bare]
			default:
				found, _ := lookup(bare)
				name = clean(found)
			}
			if name != "" {
				names = append(names, Name{whole, name})
			}
		}
	}
	return names
}

// cameWith returns the names that came with the messages of the turns, by their tokens. The name of an author
// comes before the names in other messages, and a later name before an earlier one.
func cameWith(turns []Turn) event.Names {
	known, authors := event.Names{}, event.Names{}
	add := func(to event.Names, token, name string) {
		if name = clean(name); name != "" && token != "" {
			to[strings.Replace(token, "<@!", "<@", 1)] = name
		}
	}
	carry := func(names event.Names) {
		for token, name := range names {
			add(known, token, name)
		}
	}
	for _, t := range turns {
		v := view{Turn: t}
		v.each(func(l *Line) {
			carry(l.Names)
			if l.Quoted != nil {
				carry(l.Quoted.Names)
			}
			for i := range l.Forwarded {
				carry(l.Forwarded[i].Names)
			}
			add(authors, l.Metadata.MentionToken, l.Metadata.SenderDisplayName)
		})
	}
	maps.Copy(known, authors)
	return known
}

// FindDays returns the days of the messages and of the lines in their context blocks, if there are several.
func FindDays(messages []Message, turns []Turn, zone *time.Location) (days []Day) {
	sent := map[string][]time.Time{} // by the id of the message that shows the line
	for _, t := range turns {
		v := viewOf(t, len(t.Context))
		v.each(func(l *Line) { sent[l.ID] = []time.Time{l.SentAt} })
		for _, l := range v.inBlock() {
			sent[contextID+v.id()] = append(sent[contextID+v.id()], l.SentAt)
		}
	}
	for _, m := range messages {
		for _, at := range sent[m.ID] {
			if at.IsZero() {
				continue
			}
			date := at.In(zone).Format(time.DateOnly)
			if n := len(days); n > 0 && days[n-1].Date == date {
				days[n-1].Messages++
			} else {
				days = append(days, Day{date, 1})
			}
		}
	}
	if len(days) < 2 {
		return nil
	}
	return days
}

// Forward returns the properties that a client forwards to its agent, with the notes as their member parley. A
// client's own member of this name is left out.
func (n Notes) Forward(properties json.RawMessage) json.RawMessage {
	members, err := event.ReadObject(properties)
	kept := slices.DeleteFunc(slices.Clone(members), func(m event.Extra) bool { return m.Key == "parley" })
	switch {
	case err != nil, n.IsEmpty() && len(kept) == len(members):
		return properties
	case n.IsEmpty():
		return event.WriteObject(kept)
	}
	raw, _ := n.MarshalJSON() // texts and numbers
	return event.WriteObject(append(kept, event.Extra{Key: "parley", Value: raw}))
}

// DispatchFacts returns dispatch_type and dispatch_config of the turn's last message as the context of a RunAgentInput, for a
// model, whose protocol has no place for them; nil if the message has neither.
func DispatchFacts(said []Said) json.RawMessage {
	members, _ := event.ReadObject(Dispatched(json.RawMessage(`{}`), said)) // an object
	var facts []runinput.Context
	for _, m := range members {
		var text string
		if json.Unmarshal(m.Value, &text) != nil {
			text = string(m.Value)
		}
		facts = append(facts, runinput.Context{Description: m.Key, Value: text})
	}
	if facts == nil {
		return nil
	}
	raw, _ := json.Marshal(facts) // texts always encode
	return raw
}

// Dispatched adds dispatch_type and dispatch_config of the turn's last message to the properties that a client forwards to its
// agent. The client's own members of these names stay.
func Dispatched(properties json.RawMessage, said []Said) json.RawMessage {
	if len(said) == 0 {
		return properties
	}
	metadata, err := event.ReadMetadata(said[len(said)-1].Metadata)
	members, notObject := event.ReadObject(properties)
	if err != nil || notObject != nil {
		return properties
	}
	before := len(members)
	for _, extra := range metadata.Extra {
		known := slices.ContainsFunc(members, func(m event.Extra) bool { return m.Key == extra.Key })
		if (extra.Key == event.DispatchType || extra.Key == event.DispatchConfig) && !known {
			members = append(members, extra)
		}
	}
	if len(members) == before {
		return properties
	}
	return event.WriteObject(members)
}
