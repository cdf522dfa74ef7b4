package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

// Some providers take a call back only with the thoughts of the model that made it: DeepSeek and Kimi with
// reasoning_content, OpenRouter with reasoning or reasoning_details, Gemini with the signature in extra_content.
// https://api-docs.deepseek.com/guides/thinking_mode
// https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
// https://ai.google.dev/gemini-api/docs/thought-signatures

// thoughts are the members of an assistant's message that a provider wants back as it wrote them.
type thoughts struct {
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
}

// kept is the provider's data that is stored with the calls of an answer.
type kept struct {
	thoughts
	// Extra is the member extra_content of each call; null for none.
	Extra []json.RawMessage `json:"extra,omitempty"`
}

// back returns the data to store with the calls; nil for none.
func (c *completion) back() json.RawMessage {
	k := kept{thoughts: c.kept}
	k.ReasoningDetails = c.details.list()
	for _, call := range c.calls {
		if call.name != "" {
			k.Extra = append(k.Extra, call.extra)
		}
	}
	if !slices.ContainsFunc(k.Extra, isSet) {
		k.Extra = nil
	}
	if k.ReasoningContent == nil && k.Reasoning == nil && k.ReasoningDetails == nil && k.Extra == nil {
		return nil
	}
	return remote.Keep("openai "+c.agent.config.Model, k)
}

// keep notes a part of the reasoning under the name that the server uses, also if it is empty.
func keep(member **string, raw json.RawMessage, text string) {
	if len(raw) == 0 || raw[0] != '"' {
		return
	}
	if *member == nil {
		*member = new(string)
	}
	**member += text
}

// details are the reasoning_details of an answer. The parts of one detail have its index and type.
type details struct {
	parts []map[string]json.RawMessage
	bytes int
}

// joined are the members of a detail whose parts are joined. Of the others the last one counts.
var joined = []string{"text", "summary", "data"}

// add takes the details of a part of the message.
func (d *details) add(raw json.RawMessage) {
	var list []map[string]json.RawMessage
	if !isSet(raw) || json.Unmarshal(raw, &list) != nil {
		return
	}
	d.bytes += len(raw)
	for _, part := range list {
		at := slices.IndexFunc(d.parts, func(other map[string]json.RawMessage) bool {
			return isSet(part["index"]) && string(other["index"]) == string(part["index"]) && string(other["type"]) == string(part["type"])
		})
		if at < 0 {
			d.parts = append(d.parts, part)
			continue
		}
		for name, value := range part {
			if !isSet(value) {
				continue
			}
			if before := word(d.parts[at][name]); before != "" && slices.Contains(joined, name) {
				value, _ = json.Marshal(before + word(value)) // a text
			}
			d.parts[at][name] = value
		}
	}
}

func (d *details) list() (list []json.RawMessage) {
	for _, part := range d.parts {
		raw, _ := json.Marshal(part) // decoded JSON
		list = append(list, raw)
	}
	return list
}

// giveBack adds the data that is stored with calls to the messages of a request. If the provider wants the reasoning of
// one message, it wants that of each, also an empty one.
func giveBack(model string, said []assembly.Message, messages []message) {
	var wants bool
	for i, m := range said {
		var k kept
		if !remote.Kept("openai "+model, m.Kept, &k) {
			continue
		}
		messages[i].thoughts = k.thoughts
		wants = wants || k.ReasoningContent != nil
		for j, extra := range k.Extra {
			if j < len(messages[i].ToolCalls) && isSet(extra) {
				messages[i].ToolCalls[j].Extra = extra
			}
		}
	}
	for i := range messages {
		if m := &messages[i]; wants && len(m.ToolCalls) > 0 {
			m.ReasoningContent = cmp.Or(m.ReasoningContent, new(string))
		}
	}
}
