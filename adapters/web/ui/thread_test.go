package ui_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// sam begins the members of a message of another person.
const sam = `,"sender_id":"user:0b0b0b0b-0000-4000-8000-000000000002","sender_display_name":"Sam"`

// TestThread: the page shows the messages of a thread as they come, with their authors, and their edits and deletes.
func TestThread(t *testing.T) {
	f := serve(t, message(8, "hi", ""), message(7, "Hello.", ""), message(4, "", ""))
	tab := f.open(t, shows)
	shown(t, tab, "[data-test=message]", "You: hi", "Answer: Hello.", "Completed")
	f.tell("", "I am Sam.")
	f.tell("", `,"sender_id":"agent:0b0b0b0b-0000-4000-8000-000000000003","sender_display_name":"Helper","role":"assistant","trigger":"none"`)
	f.tell("", `,"sender_id":"agent:0b0b0b0b-0000-4000-8000-000000000004","sender_display_name":"Schedule daily","role":"system","trigger":"run","reason":"schedule"`)
	const people = "Sam user:0b0b0b0b-0000-4000-8000-000000000002 : I am Sam."
	shown(t, tab, "[data-test=message]", "You: hi", "Answer: Hello.", "Completed", people,
		"Helper agent:0b0b0b0b-0000-4000-8000-000000000003 : words", "Schedule daily : words")
	f.tell("edit", `{"id":"message-2","thread_seq":2,"content":"I am Sam, too."`+sam+`,"role":"user","trigger":"none","created_at":"2026-09-21T12:00:00Z"}`)
	f.tell("delete", `{"id":"message-3","thread_seq":3}`)
	f.tell("edit", `{"id":"message-9","thread_seq":9,"run_id":"`+runID+`","content":"Hello, you.","sender_id":"agent:x","role":"assistant","trigger":"none","created_at":"2026-09-21T12:00:00Z"}`)
	shown(t, tab, "[data-test=message]", "You: hi", "Answer: Hello, you.", "Completed", "Sam user:0b0b0b0b-0000-4000-8000-000000000002 : I am Sam, too.", "Schedule daily : words")
	f.end() // a lost stream loses and repeats nothing
	tab.Wait(in("[data-test=connection]") + "[0].dataset.state === 'reconnecting'")
	f.tell("", "Still here.")
	f.begin()
	shown(t, tab, "[data-test=message]", "You: hi", "Answer: Hello, you.", "Completed", "Sam user:0b0b0b0b-0000-4000-8000-000000000002 : I am Sam, too.", "Schedule daily : words",
		"Sam user:0b0b0b0b-0000-4000-8000-000000000002 : Still here.")
}

// TestNobodyIsAsked: a message that asks no agent says so, and nothing waits for an answer.
func TestNobodyIsAsked(t *testing.T) {
	f := serve(t)
	f.unasked = true
	tab := f.open(t, `thread="`+threadID+`"`)
	shown(t, tab, "[data-test=title]", threadID)
	tab.Find("[data-test=input]").Type("hello")
	tab.Press(kb.Enter)
	shown(t, tab, "[data-test=message]", "You: hello", "The agent was not asked: no mention.")
	tab.Wait(in("[data-test=stop]") + "[0].hidden && " + in("[data-test=connection]") + "[0].dataset.state === 'idle' && " + in("[data-state=sent]") + ".length === 1")
}

// TestRows shows the rows of a run: a call with its card and its time, one that failed, and a stage.
func TestRows(t *testing.T) {
	f := serve(t)
	row := func(metadata string) {
		f.write("row", `,"sender_id":"agent:helper","role":"tool","trigger":"none","metadata":`+metadata)
	}
	row(`{"run_id":"r","stage":"tool_execution","tool_name":"look_up","latency_ms":1240,"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"text","content":"Found."}}}`)
	row(`{"run_id":"r","stage":"tool_execution","tool_name":"pay","latency_ms":90,"status":"failed","error":"no money"}`)
	row(`{"run_id":"r","stage":"intent","latency_ms":3000}`)
	tab := f.open(t, `thread="`+threadID+`"`)
	shown(t, tab, "[data-test=row]", "look_up done, 1.2 s Found.", "pay failed, 0.1 s no money", "intent done, 3.0 s")
	if n := tab.Count("[data-type='7']"); n != 0 {
		t.Errorf("%d rows are answers", n)
	}
	tab.Screenshot("rows")
}

// TestTabsOfWorkstreams: the words in a tab are for the workstream, Stop ends it, and its tab ends without the run above it.
func TestTabsOfWorkstreams(t *testing.T) {
	f := serve(t, message(8, "look", ""), message(4, "", ""))
	tab := f.open(t, shows)
	shown(t, tab, "[data-type='4']", "Completed")
	state := func(more string) string {
		return fmt.Sprintf(`{"launch_id":"01a22a2c-cecb-769b-b81a-6c6f7ba26c7b","run_id":%q,"agent":"books","name":"the books","own_run_ids":[],%s}`, runID, more)
	}
	f.tell("workstream", state(`"state":"running","phase":"executing_tool","ended_at":null`))
	shown(t, tab, "[role=tab]", "Main completed", "the books running, executing tool")
	tab.Role("tab", "the books running, executing tool").Click()
	tab.Find("[data-test=input]").Type("hurry")
	tab.Press(kb.Enter)
	const path = "/runs/" + runID + "/workstreams/01a22a2c-cecb-769b-b81a-6c6f7ba26c7b/"
	if told := f.posted(t, tab, 1); told.path != path+"messages" || told.body != `{"message":"hurry"}` {
		t.Errorf("%+v", told)
	}
	tab.Role("button", "Stop").Click()
	if stopped := f.posted(t, tab, 2); stopped.path != path+"terminate" {
		t.Errorf("%+v", stopped)
	}
	f.tell("workstream", state(`"state":"canceled","phase":"done","error":"","ended_at":"2026-09-21T12:00:00Z"`))
	shown(t, tab, "[role=tab]", "Main completed", "the books stopped")
	shown(t, tab, ".list:not([hidden]) [data-test=message]", "You: hurry", "Stopped")
	tab.Wait(in("[data-test=stop]") + "[0].hidden")
}
