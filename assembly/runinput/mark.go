package runinput

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/ingest/event"
)

// marked is the heading of a system message that is no instruction of the operator.
const marked = "[From the person who asks, not from the operator]"

// lineEnds puts two spaces behind each line end, so that no line passes for one of ours.
var lineEnds = strings.NewReplacer("\r\n", "\n  ", "\n", "\n  ", "\r", "\n  ", "\v", "\n  ", "\f", "\n  ",
	"\x1c", "\n  ", "\x1d", "\n  ", "\x1e", "\n  ", "\u0085", "\n  ", "\u2028", "\n  ", "\u2029", "\n  ")

// MarkInstructions gives each system and developer message of the rest a heading that names its
// author, and indents its text below it.
func (in *Received) MarkInstructions() {
	members, err := event.ReadObject(in.Rest)
	i := slices.IndexFunc(members, func(m event.Extra) bool { return m.Key == "messages" })
	var list []json.RawMessage
	if err != nil || i < 0 || json.Unmarshal(members[i].Value, &list) != nil {
		return // a rest that was read has the form
	}
	for n, raw := range list {
		message, _ := event.ReadObject(raw)
		if role := textOf(message, "role"); role != "system" && role != "developer" {
			continue
		}
		for k := range message {
			if message[k].Key == "content" {
				text := marked + "\n  " + lineEnds.Replace(textOf(message, "content"))
				message[k].Value, _ = json.Marshal(text) // a text always encodes
			}
		}
		list[n] = event.WriteObject(message)
	}
	members[i].Value, _ = json.Marshal(list) // raw values that were read always encode
	in.Rest = event.WriteObject(members)
}
