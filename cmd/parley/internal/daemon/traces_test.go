package daemon_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/internal/traces/tracestest"
	"parley/ingest/journal/postgres/postgrestest"
)

// exporting returns a plan whose daemon exports to a collector.
func exporting(p plan, c *tracestest.Collector, more string) plan {
	p.main += `
tracing: {otlp: "` + c.URL + `", headers: {X-Api-Key: ` + collectorKey + `}` + more + `}`
	return p
}

const collectorKey = "canary-collector-51c7ae"

// tree returns the names of the spans of a trace, each indented below its parent, in the order of their begins and names. A span whose parent is
// missing is at the top. It leaves out previews and signs of work, because only a slow answer has them.
func tree(spans []tracestest.Span, trace string) string {
	var b strings.Builder
	spans = slices.DeleteFunc(slices.Clone(spans), func(s tracestest.Span) bool { return s.Name == "deliver preview" || s.Name == "deliver unsign" })
	slices.SortStableFunc(spans, func(a, b tracestest.Span) int {
		const ms = 1e6 // the store has no smaller unit
		return cmp.Or(cmp.Compare(a.Begun/ms, b.Begun/ms), strings.Compare(a.Name, b.Name))
	})
	var below func(parent, indent string)
	below = func(parent, indent string) {
		for _, s := range spans {
			known := slices.ContainsFunc(spans, func(p tracestest.Span) bool { return p.ID == s.Parent })
			if s.Trace == trace && (s.Parent == parent && known || parent == "" && !known) {
				fmt.Fprintf(&b, "%s%s", indent, s.Name)
				for _, e := range s.Events {
					b.WriteString(" !" + e)
				}
				if s.Failed {
					b.WriteString(" failed " + s.About["error.type"])
				}
				b.WriteString("\n")
				below(s.ID, indent+"  ")
			}
		}
	}
	below("", "")
	return b.String()
}

// has returns a condition that there are a number of spans with a name.
func has(name string, n int) func([]tracestest.Span) bool {
	return func(spans []tracestest.Span) bool {
		return len(slices.DeleteFunc(slices.Clone(spans), func(s tracestest.Span) bool { return s.Name != name })) == n
	}
}

// spanOf returns the nth span with a name.
func spanOf(t *testing.T, spans []tracestest.Span, name string, n int) tracestest.Span {
	t.Helper()
	for _, s := range spans {
		if s.Name != name {
			continue
		}
		if n--; n == 0 {
			return s
		}
	}
	t.Fatalf("no span %s", name)
	return tracestest.Span{}
}

// TestTraceOfAMention: the spans of a message are one tree, from its arrival to its post, with an attempt that failed and a tool of
// another server. That server and the model get their place in it. The trace has no words, and no secret.
func TestTraceOfAMention(t *testing.T) {
	t.Parallel()
	c, tools := tracestest.New(t), newToolServer(t)
	h := open(t, exporting(plan{helper: `mcp: [{url: "` + tools.URL + `", token: ` + serverToken + `}]`}, c, ""))
	h.mention("is the cistern full?")
	first := h.answerNext(failWith(http.StatusServiceUnavailable))
	h.clock.advance(2 * time.Second)
	second := h.answerNext(callTool("", "weather", `{"city":"Gradiska"}`))
	h.answerNext(replyWith("Brimming, I should say."))
	h.posts(1)
	spans := c.Await(t, has("deliver post", 1))
	root := spanOf(t, spans, "message slack", 1)
	same(t, tree(spans, root.Trace), `message slack
  durable
  recorded
  turn helper
    chat m failed 503
    chat m !gen_ai.first_token
      execute_tool weather
    deliver post
`)
	failed, answered, turn := spanOf(t, spans, "chat m", 1), spanOf(t, spans, "chat m", 2), spanOf(t, spans, "turn helper", 1)
	same(t, first.place, "00-"+root.Trace+"-"+failed.ID+"-01")
	same(t, second.place, "00-"+root.Trace+"-"+answered.ID+"-01")
	same(t, tools.place.Load().(string), "00-"+root.Trace+"-"+spanOf(t, spans, "execute_tool weather", 1).ID+"-01")
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai", "gen_ai.agent.name": "helper",
		"parley.workspace": "acme", "parley.outcome": "answered", "parley.run": second.run,
	} {
		same(t, answered.About[key], want)
	}
	if !strings.Contains(answered.About["gen_ai.response.finish_reasons"], "stop") {
		t.Errorf("%v", answered.About)
	}
	if root.About["parley.decision.reason"] != "mention" || root.Begun == 0 || root.End < root.Begun || turn.End < answered.Begun {
		t.Errorf("%+v %+v", root, turn)
	}
	headers, about := c.Last()
	same(t, []string{headers.Get("X-Api-Key"), about["service.name"]}, []string{collectorKey, "parley"})
	for _, word := range []string{"cistern", "Brimming", "Gradiska", "Rain", "canary", signingSecret} {
		if bytes.Contains(c.Bytes(), []byte(word)) {
			t.Errorf("the collector gets %q", word)
		}
	}
	if log := h.log.String(); !strings.Contains(log, `"trace":"`+root.Trace+`"`) || strings.Contains(log, collectorKey) {
		t.Errorf("the log does not name the trace\n%s", log)
	}
}

// TestContentOfTraces: with content, the attempt has the words of the input and of the answer, and the tool its arguments and its
// result. A span has no secret even then.
func TestContentOfTraces(t *testing.T) {
	t.Parallel()
	c, tools := tracestest.New(t), newToolServer(t)
	h := open(t, exporting(plan{helper: `mcp: [{url: "` + tools.URL + `", token: ` + serverToken + `}]`}, c, ", content: true"))
	h.mention("is the cistern full?")
	h.answerNext(callTool("", "weather", `{"city":"Gradiska"}`))
	h.answerNext(replyWith("Brimming, I should say."))
	spans := c.Await(t, has("deliver post", 1))
	chat, tool := spanOf(t, spans, "chat m", 1), spanOf(t, spans, "execute_tool weather", 1)
	for text, word := range map[string]string{
		chat.About["gen_ai.input.messages"]: "cistern", chat.About["gen_ai.output.messages"]: "Brimming", tool.About["gen_ai.tool.call.arguments"]: "Gradiska",
		tool.About["gen_ai.tool.call.result"]: "Rain in Gradiska",
	} {
		if !strings.Contains(text, word) || len(text) > 20<<10 {
			t.Errorf("%q is not in %.200s", word, text)
		}
	}
	if said := chat.About["gen_ai.output.messages"]; !strings.Contains(said, `"finish_reason":"stop"`) || chat.About["gen_ai.response.time_to_first_chunk"] == "" {
		t.Errorf("the answer is not in the form of the conventions: %s %v", said, chat.About)
	}
	if bytes.Contains(c.Bytes(), []byte("canary")) {
		t.Error("the collector gets a secret")
	}
}

// TestCallersOfTheAPIContinueTheirTraces: a caller's trace goes on with the message, and its flag decides whether the trace is recorded. A
// message that a program injects has a trace of its own, with a link to the program's.
func TestCallersOfTheAPIContinueTheirTraces(t *testing.T) {
	t.Parallel()
	c := tracestest.New(t)
	places := make(chan string, 4)
	program := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { places <- r.Header.Get("Traceparent") }))
	defer program.Close()
	h := open(t, withInjectors(exporting(plan{}, c, ", sample: 0"), "acme", program.URL))
	const sampled, other = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319c"
	send := func(workspace, body, place string) {
		t.Helper()
		request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+"/api/v1/workspaces/"+workspace+"/messages", strings.NewReader(body))
		if err == nil {
			request.Header.Set("Authorization", "Bearer "+crmToken)
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Traceparent", place)
		}
		if got := h.send(request, err); got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	send("ours", `{"content":"one"}`, "00-"+other+"-b7ad6b7169203331-00") // not recorded, and neither is a message without a caller's trace
	same(t, h.answerNext(replyWith("One.")).place[:36], "00-"+other+"-")
	same(t, (<-places)[:36], "00-"+other+"-")
	h.mention("two")
	h.answerNext(replyWith("Two."))
	send("ours", `{"content":"three"}`, "00-"+sampled+"-b7ad6b7169203331-01")
	asked := h.answerNext(replyWith("Three."))
	same(t, asked.place[:36], "00-"+sampled+"-")
	spans := c.Await(t, has("deliver copy", 1))
	same(t, tree(spans, sampled), "message web\n  durable\n  recorded\n  turn helper\n    chat m !gen_ai.first_token\n    deliver copy\n")
	same(t, spanOf(t, spans, "message web", 1).Parent, "b7ad6b7169203331")
	same(t, <-places, "00-"+sampled+"-"+spanOf(t, spans, "deliver copy", 1).ID+"-01")
	same(t, len(spans), 6)

	send("acme", `{"content":"four","metadata":{`+crmSays+`},"to":{"channel":"`+room+`"},"mentioned":true}`, "00-"+sampled+"-b7ad6b7169203331-01")
	h.answerNext(replyWith("Four."))
	spans = c.Await(t, has("deliver copy", 2))
	root := spanOf(t, spans, "message slack", 1)
	same(t, root.Links, []tracestest.Link{{Trace: sampled, Span: "b7ad6b7169203331", Meaning: "injected by"}})
	if root.Trace == sampled || root.Parent != "" {
		t.Errorf("%+v", root)
	}
}

// TestBridgesGetTheirPlaceInATrace checks that the program of a bridge gets the span of each delivery.
func TestBridgesGetTheirPlaceInATrace(t *testing.T) {
	t.Parallel()
	c, places := tracestest.New(t), make(chan string, 4)
	program := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { places <- r.Header.Get("Traceparent") }))
	defer program.Close()
	h := open(t, exporting(plan{files: map[string]string{"workspaces/irc.yaml": bridgeFile("irc", ircToken, program.URL, "")}}, c, ""))
	if got := h.bridge("irc", ircToken, `{"id":"m1",`+ircGarden+`,"content":"is it dry?","mentioned":true,`+ircNora+`}`); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	h.answerNext(replyWith("No."))
	sent := spanOf(t, c.Await(t, has("deliver post", 1)), "deliver post", 1)
	same(t, <-places, "00-"+sent.Trace+"-"+sent.ID+"-01")
}

// TestCoalescedTurnIsInTheTraceOfItsFirstMessage: the turn has links to the other messages.
func TestCoalescedTurnIsInTheTraceOfItsFirstMessage(t *testing.T) {
	t.Parallel()
	c := tracestest.New(t)
	h := open(t, exporting(plan{turns: "coalesce: 30s, coalesce_max: 30s"}, c, ""))
	root := h.mention("one")
	h.follow(root, "two")
	c.Await(t, has("message slack", 2))
	h.clock.advance(time.Minute)
	h.answerNext(replyWith("Both."))
	spans := c.Await(t, has("turn helper", 1))
	first, second, turn := spanOf(t, spans, "message slack", 1), spanOf(t, spans, "message slack", 2), spanOf(t, spans, "turn helper", 1)
	if first.Begun > second.Begun {
		first, second = second, first
	}
	same(t, []string{turn.Trace, turn.Parent}, []string{first.Trace, first.ID})
	same(t, turn.Links, []tracestest.Link{{Trace: second.Trace, Span: second.ID, Meaning: "message"}})
}

// TestTraceOfAWorkstream: a run and those of its workstreams have links to each other, and so has the run for the report.
func TestTraceOfAWorkstream(t *testing.T) {
	t.Parallel()
	c := tracestest.New(t)
	h := openLead(t, exporting(plan{}, c, ""))
	h.mention("who is right?")
	asked := <-h.inputs
	h.launch(asked.RunID, `{"task":"Look it up.","agent":"echo","name":"the books"}`)
	c.Await(t, has("turn echo", 1))
	h.reply(asked.RunID, "I have asked echo.")
	report := <-h.inputs
	h.reply(report.RunID, "Both are.")
	spans := c.Await(t, has("turn helper", 2))
	lead, child, last := spanOf(t, spans, "turn helper", 1), spanOf(t, spans, "turn echo", 1), spanOf(t, spans, "turn helper", 2)
	same(t, child.Links, []tracestest.Link{{Trace: lead.Trace, Span: lead.ID, Meaning: "launched by"}})
	same(t, lead.Links, []tracestest.Link{{Trace: child.Trace, Span: child.Parent, Meaning: "workstream"}})
	same(t, last.Links, []tracestest.Link{{Trace: child.Trace, Span: child.Parent, Meaning: "reported by"}})
	if lead.Trace == child.Trace || last.Trace == lead.Trace {
		t.Errorf("%+v", spans)
	}
}

// TestTraceGoesOnOnAnotherNode: a run that another node takes over stays in its trace, below the span of its message, which the first
// node has exported.
func TestTraceGoesOnOnAnotherNode(t *testing.T) {
	t.Parallel()
	c := tracestest.New(t)
	h := open(t, exporting(plan{store: postgrestest.URL(t), stop: 6 * time.Second}, c, ""))
	other := &harness{t: t, ctx: h.ctx, dir: h.dir, clock: h.clock, log: new(log), client: h.client}
	if err := other.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.stop() })
	h.mention("a hard question")
	first := h.nextRequest()
	c.Await(t, has("message slack", 1))
	if err := h.stop(); err != nil {
		t.Fatalf("%v\n%s", err, h.log)
	}
	second := h.nextRequest()
	h.answer(second, replyWith("An answer."))
	h.posts(1)
	spans := c.Await(t, has("deliver post", 1))
	root := spanOf(t, spans, "message slack", 1)
	same(t, tree(spans, root.Trace), "message slack\n  durable\n  recorded\n  turn helper\n    chat m\n    chat m !gen_ai.first_token\n    deliver post\n")
	same(t, []string{first.place[3:35], second.place[3:35]}, []string{root.Trace, root.Trace})
	if one, two := spanOf(t, spans, "chat m", 1).About["parley.node"], spanOf(t, spans, "chat m", 2).About["parley.node"]; one == two {
		t.Errorf("both attempts are of node %s", one)
	}
}

// TestCollectorAway: a collector that is away delays nothing and costs one warning. The stop sends the spans that wait.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	c := tracestest.New(t)
	c.SetAway(true)
	h := open(t, exporting(plan{}, c, ""))
	for i := range 3 {
		h.mention("one")
		h.answerNext(replyWith("One."))
		h.posts(i + 1)
		c.AwaitCalls(t, i+1)
	}
	same(t, h.warnings("collector"), 1)
	if h.metric("parley_trace_spans_lost_total") == 0 {
		t.Error("no lost span is counted")
	}
	c.SetAway(false)
	h.mention("two")
	h.answerNext(replyWith("Two."))
	h.posts(4)
	h.awaitMetric(`parley_deliveries_total{state="sent",workspace="acme"}`, 4)
	if err := h.stop(); err != nil {
		t.Errorf("%v\n%s", err, h.log)
	}
	c.Await(t, func(spans []tracestest.Span) bool {
		return slices.ContainsFunc(spans, func(s tracestest.Span) bool { return s.Name == "deliver post" })
	})
}

// TestCollectorThatHangs checks that a collector that takes connections and never answers delays no message, and that the daemon stops
// within its time, and says that spans are lost.
func TestCollectorThatHangs(t *testing.T) {
	t.Parallel()
	hung, released := make(chan struct{}, 100), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		hung <- struct{}{}
		<-released
	}))
	defer hangs.Close()
	defer close(released)
	h := open(t, exporting(plan{stop: 3 * time.Second}, &tracestest.Collector{Server: hangs}, ""))
	h.mention("one")
	h.answerNext(replyWith("One."))
	h.posts(1)
	<-hung
	h.mention("two")
	h.answerNext(replyWith("Two."))
	h.posts(2)
	if err := h.stop(); err != nil {
		t.Errorf("%v\n%s", err, h.log)
	}
	same(t, h.warnings("collector"), 1)
}

// TestWithoutTracing checks that nothing is traced, and nothing of a caller's trace is stored, unless the configuration says so.
func TestWithoutTracing(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+"/api/v1/workspaces/ours/messages", strings.NewReader(`{"content":"one"}`))
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+ownToken)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	}
	if got := h.send(request, err); got.status != http.StatusAccepted || strings.Contains(got.body, "traceparent") {
		t.Errorf("%d %s", got.status, got.body)
	}
	same(t, h.answerNext(replyWith("One.")).place, "")
}
