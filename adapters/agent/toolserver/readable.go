package toolserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/ingest/event"
)

// faultKey is the key of a tool's metadata that says why the tool is left out.
const faultKey = "parley/fault"

// readable returns the body of a response as the protocol's library reads it whole. The library gives up a list for
// one tool, and a result for one part, that it cannot decode, and it rounds the numbers of structuredContent. So a tool that
// cannot be decoded becomes one with a fault, such a part becomes its name, and structuredContent becomes a text of its JSON.
func readable(kind string, body io.Reader) io.Reader {
	switch kind {
	case "application/json":
		return &rewritten{next: func() ([]byte, error) {
			raw, err := io.ReadAll(body)
			if err == nil && len(raw) == 0 {
				err = io.EOF
			}
			return readableMessage(raw), err
		}}
	case "text/event-stream":
		lines := bufio.NewReader(body)
		return &rewritten{next: func() ([]byte, error) {
			line, err := lines.ReadBytes('\n')
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				line = append(append([]byte("data: "), readableMessage(bytes.TrimSpace(data))...), '\n')
			}
			return line, err
		}}
	}
	return body
}

// rewritten reads pieces, the last of which comes with an error.
type rewritten struct {
	next func() ([]byte, error)
	rest []byte
	err  error
}

// Read implements io.Reader.
func (r *rewritten) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.rest, r.err = r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// readableMessage returns a message of the protocol; any other text stays as it is.
func readableMessage(raw []byte) []byte {
	return change(raw, "result", func(result json.RawMessage) json.RawMessage {
		result = change(result, "structuredContent", func(value json.RawMessage) json.RawMessage {
			if string(value) == "null" {
				return value
			}
			text, _ := json.Marshal(string(value)) // a text always encodes
			return text
		})
		result = change(result, "content", each(func(part json.RawMessage) json.RawMessage {
			if isReadable(`{"content":[`+string(part)+`]}`, new(mcp.CallToolResult)) {
				return part
			}
			var named struct{ Type, MIMEType string }
			_ = json.Unmarshal(part, &named) // a part of another form has no name
			text, _ := json.Marshal(map[string]string{"type": "text", "text": "[unreadable " + named.Type + " " + named.MIMEType + "]"})
			return text
		}))
		return change(result, "tools", each(func(tool json.RawMessage) json.RawMessage {
			if isReadable(`{"tools":[`+string(tool)+`]}`, new(mcp.ListToolsResult)) {
				return tool
			}
			var named struct{ Name json.RawMessage }
			_ = json.Unmarshal(tool, &named)
			var name string
			_ = json.Unmarshal(named.Name, &name)
			text, _ := json.Marshal(map[string]any{"name": name, "inputSchema": map[string]string{"type": "object"}, "_meta": map[string]string{faultKey: "the server describes it in a wrong form"}})
			return text
		}))
	})
}

func isReadable(text string, into any) bool { return json.Unmarshal([]byte(text), into) == nil }

// each returns a change of every value of a list.
func each(one func(json.RawMessage) json.RawMessage) func(json.RawMessage) json.RawMessage {
	return func(list json.RawMessage) json.RawMessage {
		if list[0] != '[' {
			return list
		}
		out, n := []byte{'['}, 0
		for value := range event.Values(list) {
			if n++; n > 1 {
				out = append(out, ',')
			}
			out = append(out, one(value)...)
		}
		return append(out, ']')
	}
}

// change returns an object with another value of a member, if it has it. The other members keep their bytes.
func change(raw json.RawMessage, key string, value func(json.RawMessage) json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(key)) {
		return raw
	}
	members, err := event.ReadObject(raw)
	if err != nil {
		return raw
	}
	for i, m := range members {
		if m.Key == key {
			members[i].Value = value(m.Value)
		}
	}
	return event.WriteObject(members)
}
