package assembly

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/assembly/runinput"
)

// Native says which parts of Input.Given an agent's protocol has a place for. AddGiven leaves these parts to
// the agent.
type Native struct {
	Instructions bool // system and developer messages
	Tools        bool
	Facts        bool // context, state and forwarded properties
	Messages     bool // of the assistant and of tools
}

// fencedID begins the id of a block of text that has a fence of its own.
const fencedID = "fenced-"

// furtherID begins the id of a client's message behind the user's.
const furtherID = "further-"

// AddGiven adds what a client of the run protocol gave for a turn, whose message is the last one: directly
// before it the instructions, the tools and the facts as system messages, and behind it the
// assistant's calls of tools and their results. Each call has exactly one result directly behind it, as
// model servers demand. A result without a call becomes a user's message.
func AddGiven(messages []Message, given *runinput.Rest, native Native) ([]Message, error) {
	last := len(messages) - 1
	said := messages[last]
	messages = messages[:last:last]
	add := func(kind, text string) {
		if text != "" {
			messages = append(messages, Message{ID: fmt.Sprintf("%s%d-%s", kind, len(messages)-last, said.ID), Role: RoleSystem, Parts: []Part{{Text: text}}})
		}
	}
	if !native.Instructions {
		for _, text := range given.Instructions() {
			add("given-", text)
		}
	}
	for _, block := range []struct {
		native bool
		text   func() (string, error)
	}{{native.Tools, given.ToolsPrompt}, {native.Facts, given.FactsPrompt}} {
		if block.native {
			continue
		}
		text, err := block.text()
		if err != nil {
			return nil, err
		}
		add(fencedID, text)
	}
	messages = append(messages, said)
	if !native.Messages {
		messages = append(messages, further(given.Further(), said.ID)...)
	}
	return messages, nil
}

// AddTools adds the block of tools before the message of the current turn, for an agent whose server refuses
// tools after AddGiven has left them to it.
func AddTools(messages []Message, given *runinput.Rest) ([]Message, error) {
	text, err := given.ToolsPrompt()
	if err != nil || text == "" {
		return messages, err
	}
	return addBlock(messages, fencedID+"tools-", text), nil
}

// AddWorking adds the block about the workstreams of the agent that work, before the message of the current turn.
func AddWorking(messages []Message, text string) []Message {
	return addBlock(messages, "working-", text)
}

// addBlock adds a block before the message of the current turn. Its id begins with kind.
func addBlock(messages []Message, kind, text string) []Message {
	at := len(messages) - 1
	for at > 0 && strings.HasPrefix(messages[at].ID, furtherID) {
		at--
	}
	return slices.Insert(slices.Clone(messages), at, Message{ID: kind + messages[at].ID, Role: RoleSystem, Parts: []Part{{Text: text}}})
}

// Step is a request to the agent that ended with calls of Parley's tools.
type Step struct {
	Text    string // before the calls
	Calls   []runinput.Call
	Kept    json.RawMessage // see Message.Kept
	Results []string        // of the calls, in their order
	// Joined are the UUIDs of the messages that joined the run after the calls, and Told what Parley has told it.
	Joined []string
	Told   []string
}

// AddStep adds step n of a run behind the messages of its input: the agent's words and calls, then the results, then
// the messages of Told and Joined.
func AddStep(messages []Message, n int, s Step) []Message {
	var kept, joined []Message
	for _, m := range messages {
		if slices.Contains(s.Joined, m.ID) {
			joined = append(joined, m)
		} else {
			kept = append(kept, m)
		}
	}
	id := func(part int) string { return fmt.Sprintf("%sstep-%d-%d", furtherID, n, part) }
	said := Message{ID: id(0), Role: RoleAssistant, Parts: []Part{{Text: s.Text}}, Kept: s.Kept}
	results := make([]Message, len(s.Calls))
	for i, call := range s.Calls {
		// Some servers take ids of nine letters and digits alone, and some models use an id once more.
		callID := fmt.Sprintf("step%02d%03d", n, i)
		said.Calls = append(said.Calls, runinput.Call{ID: callID, Name: runinput.Safe(call.Name), Arguments: string(call.Object())})
		results[i] = Message{ID: id(1 + i), Role: RoleTool, CallID: callID, Parts: []Part{{Text: s.Results[i]}}}
	}
	kept = append(append(kept, said), results...)
	for i, text := range s.Told {
		kept = append(kept, Message{ID: id(1 + len(results) + i), Role: RoleSystem, Parts: []Part{{Text: indentImitations(text)}}})
	}
	return append(kept, joined...)
}

// noResult replaces the result of a call if the client gave none.
const noResult = "(no result)"

// further returns the client's messages behind the one with the id after.
func further(list []runinput.Further, after string) (messages []Message) {
	p := pairing{list: list, used: make([]bool, len(list)), ids: map[string]bool{}}
	said := make([][]Message, len(list))
	for i, m := range list {
		if m.Role == "assistant" {
			said[i] = p.assistant(m)
		}
	}
	for i, m := range list {
		if m.Role == "tool" && !p.used[i] {
			said[i] = []Message{{Role: RoleUser, Parts: headed("Result of a tool", m.Content)}}
		}
	}
	messages = slices.Concat(said...)
	for i := range messages {
		messages[i].ID = fmt.Sprintf("%s%d-%s", furtherID, i, after)
	}
	return messages
}

// pairing gives each call its result.
type pairing struct {
	list []runinput.Further
	used []bool          // the results that a call has
	ids  map[string]bool // of the calls so far
}

// assistant returns an assistant's message, and behind it the results of its calls; nothing for a blank
// message.
func (p *pairing) assistant(m runinput.Further) (messages []Message) {
	said := Message{Role: RoleAssistant, Parts: []Part{{Text: m.Content}}}
	for _, call := range m.Calls {
		result, id := p.result(call.ID), p.id(call.ID)
		said.Calls = append(said.Calls, runinput.Call{ID: id, Name: runinput.Safe(call.Name), Arguments: string(call.Object())})
		messages = append(messages, Message{Role: RoleTool, CallID: id, Parts: []Part{{Text: result}}})
	}
	if len(said.Calls) == 0 && strings.TrimSpace(m.Content) == "" {
		return nil
	}
	return append([]Message{said}, messages...)
}

// result returns the first result of a call that no other call has.
func (p *pairing) result(call string) string {
	for i, m := range p.list {
		if m.Role == "tool" && m.CallID == call && !p.used[i] {
			p.used[i] = true
			return m.Content
		}
	}
	return noResult
}

// id returns the id of a call in a form that model servers take. Each id is one call.
func (p *pairing) id(given string) string {
	id := runinput.Safe(given)
	for n := 2; p.ids[id]; n++ {
		id = runinput.Safe(fmt.Sprintf("%s #%d", given, n))
	}
	p.ids[id] = true
	return id
}

// headed returns a text below a heading that names its author. No line of it imitates a heading.
func headed(heading, text string) []Part {
	return []Part{{Text: indentImitations("[" + heading + "]: " + text)}}
}

// Plain returns the messages for a model that knows no tools: calls and results are texts.
func Plain(messages []Message) []Message {
	plain, names := make([]Message, len(messages)), map[string]string{}
	for i, m := range messages {
		if len(m.Calls) > 0 {
			var texts []string
			if text := m.Text(); strings.TrimSpace(text) != "" {
				texts = append(texts, text)
			}
			for _, call := range m.Calls {
				names[call.ID] = call.Name
				texts = append(texts, "[Call of the tool "+call.Name+"]: "+call.Arguments)
			}
			m.Parts, m.Calls, m.Kept = []Part{{Text: strings.Join(texts, "\n")}}, nil, nil
		}
		if m.Role == RoleTool {
			m.Role, m.CallID, m.Parts = RoleUser, "", headed("Result of the tool "+names[m.CallID], m.Text())
		}
		plain[i] = m
	}
	return plain
}

// EndWithUser returns the messages so that an assistant's does not end them, because some models refuse
// to continue it: it becomes a user's message.
func EndWithUser(messages []Message) []Message {
	last := len(messages) - 1
	if last < 0 || messages[last].Role != RoleAssistant {
		return messages
	}
	return append(messages[:last:last], messages[last].Told())
}

// Told returns an assistant's message as a user's, below a heading.
func (m Message) Told() Message {
	m.Role, m.Parts = RoleUser, headed("The assistant so far", m.Text())
	return m
}
