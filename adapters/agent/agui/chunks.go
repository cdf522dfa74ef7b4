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
// subagentRunId, in which one message or tool call may be open. Its Type is its kind, such as
// TEXT_MESSAGE.
type chunks map[string]streamEvent

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
	open, going := c[lane]
	id := e.chunkID(kind)
	if !going || open.Type != kind || id != "" && id != open.chunkID(kind) {
		events = c.end(lane)
		if err := e.mustBegin(kind); err != nil {
			return nil, err
		}
		open = e
		open.Type = kind
		if kind == "TEXT_MESSAGE" {
			open.Role = cmp.Or(e.Role, "assistant")
		}
		c[lane] = open
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

// lane returns the lane of a chunk. Without a subagent's id, it is the lane of the message
// that the chunk names or continues.
func (c chunks) lane(kind string, e streamEvent) (string, error) {
	var same []string // lanes with an open one of this kind, or with this very one
	id := e.chunkID(kind)
	for lane, open := range c {
		if open.Type == kind && (id == "" || id == open.chunkID(kind)) {
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

// end ends the open message or tool call of a lane, if there is one.
func (c chunks) end(lane string) []streamEvent {
	open, ok := c[lane]
	if !ok {
		return nil
	}
	delete(c, lane)
	open.Type += "_END"
	return []streamEvent{open}
}

// chunkID returns the id of the message or tool call of a chunk.
func (e streamEvent) chunkID(kind string) string {
	if kind == "TOOL_CALL" {
		return e.ToolCallID
	}
	return e.MessageID
}
