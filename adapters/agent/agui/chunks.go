package agui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// chunks turns the chunk events of a run into the events that begin, continue and end a
// message or a tool call. The agent and each of its subagents have a lane of their own, by
// subagentRunId, in which one reasoning message, one tool call or several text messages may be open,
// the last continued one last. Their Type is their kind, such as TEXT_MESSAGE.
type chunks map[string][]streamEvent

// maxOpen bounds the open text messages of a lane.
const maxOpen = 64

// expand returns the events that take the place of an event. An event that is no chunk ends
// the open message of its lane before it.
func (c chunks) expand(e streamEvent) (events []streamEvent, err error) {
	kind, isChunk := strings.CutSuffix(e.Type, "_CHUNK")
	switch {
	case isChunk:
		return c.grow(kind, e)
	case slices.Contains([]string{"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"}, e.Type):
		for _, lane := range slices.Sorted(maps.Keys(c)) {
			events = append(events, c.end(lane)...)
		}
	case known(e.Type) && !slices.Contains([]string{"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED"}, e.Type):
		events = c.end(e.SubagentRunID)
	}
	return append(events, e), nil
}

// grow takes a chunk, which may begin a message.
func (c chunks) grow(kind string, e streamEvent) (events []streamEvent, err error) {
	lane, err := c.lane(kind, e)
	if err != nil {
		return nil, err
	}
	open, going := c.goOn(lane, kind, e.chunkID(kind))
	if !going {
		if list := c[lane]; kind != "TEXT_MESSAGE" || len(list) == maxOpen || len(list) > 0 && list[0].Type != kind {
			events = c.end(lane)
		}
		if err := e.mustBegin(kind); err != nil {
			return nil, err
		}
		open = e
		open.Type = kind
		if kind == "TEXT_MESSAGE" {
			open.Role = cmp.Or(e.Role, "assistant")
		}
		c[lane] = append(c[lane], open)
		begin := e
		begin.Type = kind + "_START"
		events = append(events, begin)
	}
	if e.ToolCallName != "" && e.ToolCallName != open.ToolCallName || e.Role != "" && open.Role != "" && e.Role != open.Role {
		return nil, fmt.Errorf("%s: the role or the name is not that of the open one: %s", e.Type, open.chunkID(kind))
	}
	if len(e.Delta) > 0 && string(e.Delta) != "null" {
		e.MessageID, e.ToolCallID, e.SubagentRunID = open.MessageID, open.ToolCallID, open.SubagentRunID
		e.Type = kind + "_CONTENT"
		if kind == "TOOL_CALL" {
			e.Type = kind + "_ARGS"
		}
		events = append(events, e)
	}
	return events, nil
}

// goOn returns the open one that a chunk continues, and makes it the last one of its lane.
func (c chunks) goOn(lane, kind, id string) (open streamEvent, going bool) {
	for i, open := range slices.Backward(c[lane]) {
		if open.is(kind, id) {
			c[lane] = append(slices.Delete(c[lane], i, i+1), open)
			return open, true
		}
	}
	return open, false
}

// lane returns the lane of a chunk. Without a subagent's id, it is the lane of the message
// that the chunk names or continues.
func (c chunks) lane(kind string, e streamEvent) (string, error) {
	var same []string // lanes with an open one of this kind, or with this very one
	id := e.chunkID(kind)
	for lane, list := range c {
		if slices.ContainsFunc(list, func(open streamEvent) bool { return open.is(kind, id) }) {
			same = append(same, lane)
		}
	}
	switch {
	case id != "" && len(same) == 1 && e.SubagentRunID != "" && e.SubagentRunID != same[0]:
		return "", fmt.Errorf("%s.subagentRunId: is not that of the open one: %s", e.Type, id)
	case e.SubagentRunID != "" || slices.Contains(same, "") || len(same) == 0:
		return e.SubagentRunID, nil
	case len(same) > 1:
		return "", fmt.Errorf("%s: names neither a message nor a subagent, and several are open", e.Type)
	}
	return same[0], nil
}

// end ends what is open in a lane.
func (c chunks) end(lane string) []streamEvent {
	list := c[lane]
	delete(c, lane)
	for i := range list {
		list[i].Type += "_END"
	}
	return list
}

// is reports whether an open one has this kind and id; an empty id is that of any.
func (e streamEvent) is(kind, id string) bool {
	return e.Type == kind && (id == "" || id == e.chunkID(kind))
}

// chunkID returns the id of the message or tool call of a chunk.
func (e streamEvent) chunkID(kind string) string {
	if kind == "TOOL_CALL" {
		return e.ToolCallID
	}
	return e.MessageID
}
