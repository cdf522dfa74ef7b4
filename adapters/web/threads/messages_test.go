package threads_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/web/internal/testapi"
	"parley/adapters/web/payload"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// TestListMessages checks the messages of a page: a tombstone, a reply with its sequence
// numbers, a notice, and a row from before the ingest contract.
func TestListMessages(t *testing.T) {
	b := &testapi.Backend{Listed: []messages.Listed{
		{Message: messages.Message{Seq: 4, UUID: "m1", SenderID: "web:olivia", Author: messages.ByHuman, Version: 1, Trigger: messages.TriggerRun,
			Reason: "direct", CreatedAt: testapi.Noon, DeletedAt: testapi.Noon, Metadata: []byte("{}")}, Asked: &messages.Asked{ID: "run-1", State: "failed", Error: "Sorry.", Cause: "no route to host"}},
		{Message: messages.Message{Seq: 5, UUID: "r1", SenderID: "agent:helper", Author: messages.ByAgent, Version: 1, Trigger: messages.TriggerNone,
			Content: "hi", CreatedAt: testapi.Noon, Metadata: []byte("{}"), Run: "run"}, Freshness: &messages.Freshness{Known: event.Known{BaseSeq: new(int64(3)), LatestSeenSeq: new(int64(3))}, ServerSeq: 4}},
		{Message: messages.Message{Seq: 6, UUID: "n1", SenderID: "system:parley", Author: messages.BySystem, Version: 1, Trigger: messages.TriggerNone,
			Content: "Sorry.", CreatedAt: testapi.Noon, Metadata: []byte("{}"), Run: "run-1"}},
		{Message: messages.Message{Seq: 7, UUID: "o1", SenderID: "slack:U1", Author: messages.ByHuman, Trigger: messages.TriggerNone,
			Content: "[Slack channel:C1 user:Olivia] hello", CreatedAt: testapi.Noon, Metadata: []byte(`{"source":"slack"}`)}},
	}}
	server := b.Serve(t)
	got := testapi.Do(t, server, "GET", "/threads/"+strings.ToUpper(testapi.Thread)+"/messages?after=3&limit=4", "")
	at := testapi.Noon.Format(time.RFC3339)
	row := func(seq float64, id, sender, role, trigger, content string, more map[string]any) map[string]any {
		m := map[string]any{"id": id, "thread_seq": seq, "role": role, "sender_id": sender, "content": content, "metadata": map[string]any{},
			"attachments": []any{}, "trigger": trigger, "created_at": at}
		for key, value := range more {
			m[key] = value
		}
		return m
	}
	want := map[string]any{"next": 7.0, "messages": []any{
		row(4, "m1", "web:olivia", "user", "run", "", map[string]any{"reason": "direct", "deleted_at": at,
			"run": map[string]any{"id": "run-1", "state": "failed", "error": "Sorry."}}),
		row(5, "r1", "agent:helper", "assistant", "none", "hi", map[string]any{"run_id": "run", "base_seq": 3.0, "latest_seen_seq": 3.0, "server_seq_at_submit": 4.0,
			"stale": true, "stale_lag": 1.0}),
		row(6, "n1", "system:parley", "system", "none", "Sorry.", map[string]any{"kind": "notice", "run_id": "run-1"}),
		row(7, "o1", "slack:U1", "user", "none", "hello", map[string]any{"metadata": map[string]any{"source": "slack"}}),
	}}
	if diff := cmp.Diff(testapi.Answer{Status: 200, Body: want}, got); diff != "" {
		t.Error(diff)
	}
	if b.Asked != "ours/"+testapi.Thread || b.Page != (messages.Page{After: 3, Limit: 4}) {
		t.Errorf("the API asked for %+v of %s", b.Page, b.Asked)
	}
	if back := testapi.Do(t, server, "GET", "/threads/"+testapi.Thread+"/messages?before=8&limit=2", ""); back.Body["next"] != 4.0 || b.Page != (messages.Page{Before: 8, Limit: 2}) {
		t.Errorf("backwards: next is %v, and the API asked for %+v", back.Body["next"], b.Page)
	}
	if last := testapi.Do(t, server, "GET", "/threads/"+testapi.Thread+"/messages", ""); last.Body["next"] != nil || b.Page.Limit != 100 {
		t.Errorf("the last page has the cursor %v and the limit %d", last.Body["next"], b.Page.Limit)
	}
}

// TestOnlyAnIntegrationSeesTheCause of a failed run; everybody sees the sentence of the notice.
func TestOnlyAnIntegrationSeesTheCause(t *testing.T) {
	asked := &messages.Asked{ID: "run-1", State: "failed", Error: "Sorry.", Cause: "no route to host"}
	b := &testapi.Backend{Listed: []messages.Listed{{Message: messages.Message{Author: messages.ByHuman, Metadata: []byte("{}")}, Asked: asked}}}
	server := b.Serve(t)
	for token, cause := range map[string]any{testapi.OwnToken: nil, testapi.AnyToken: "no route to host", testapi.ReaderToken: nil} {
		got := testapi.Do(t, server, "GET", "/threads/"+testapi.Thread+"/messages", "", "Authorization", "Bearer "+token)
		run := got.Body["messages"].([]any)[0].(map[string]any)["run"].(map[string]any)
		if run["error"] != "Sorry." || run["cause"] != cause {
			t.Errorf("%s: %v", token, run)
		}
	}
}

// TestListErrors checks the faults of a query, and the store's errors.
func TestListErrors(t *testing.T) {
	b := &testapi.Backend{}
	server := b.Serve(t)
	for query, fields := range map[string][]string{"?after=-1&before=x&limit=0": {"after", "before", "limit"}, "?limit=501": {"limit"}, "?after=x": {"after"}} {
		if got := testapi.Do(t, server, "GET", "/threads/"+testapi.Thread+"/messages"+query, ""); got.Status != 400 || cmp.Diff(fields, got.Faults()) != "" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := testapi.Do(t, server, "GET", "/threads/mine/messages", ""); got.Status != 400 {
		t.Errorf("without a UUID: %+v", got)
	}
	for _, c := range []struct {
		err  error
		want int
	}{{storage.ErrNotFound, 404}, {errors.New("the disk is gone"), 503}, {event.FieldErrors{{Field: "before", Message: "no"}}, 400}} {
		b.List = c.err
		for _, path := range []string{"/threads/" + testapi.Thread + "/messages", "/threads"} {
			if got := testapi.Do(t, server, "GET", path, "", "Authorization", "Bearer "+testapi.AnyToken); got.Status != c.want {
				t.Errorf("%s, %v: %+v, want %d", path, c.err, got, c.want)
			}
		}
	}
}

// TestRights checks what each token may do in each workspace.
func TestRights(t *testing.T) {
	const forbidden, unauthorized = 403, 401
	for name, c := range map[string]struct {
		token             string
		post, list, read  int // in ours
		posts, lists, see int // in acme, which is on another platform
	}{
		"own":                 {testapi.OwnToken, 202, forbidden, 200, unauthorized, unauthorized, unauthorized},
		"any":                 {testapi.AnyToken, 202, 200, 200, unauthorized, unauthorized, unauthorized},
		"reader of another":   {testapi.ReaderToken, unauthorized, 200, 200, unauthorized, 200, 200},
		"a wrong token":       {"wrong", unauthorized, unauthorized, unauthorized, unauthorized, unauthorized, unauthorized},
		"an empty token":      {"", unauthorized, unauthorized, unauthorized, unauthorized, unauthorized, unauthorized},
		"two tokens, no good": {testapi.OwnToken + testapi.ReaderToken, unauthorized, unauthorized, unauthorized, unauthorized, unauthorized, unauthorized},
	} {
		b := &testapi.Backend{Result: testapi.Stored}
		server := b.Serve(t)
		call := func(method, path string) int {
			body := ""
			if method == "POST" {
				body = `{"content":"hi","metadata":` + testapi.CRMJSON + `}`
				if c.token == testapi.OwnToken {
					body = `{"content":"hi"}`
				}
			}
			return testapi.Do(t, server, method, path, body, "Authorization", "Bearer "+c.token).Status
		}
		got := []int{call("POST", "/messages"), call("GET", "/threads"), call("GET", "/threads/"+testapi.Thread+"/messages"),
			call("POST", "/acme/messages"), call("GET", "/acme/threads"), call("GET", "/acme/threads/"+testapi.Thread+"/messages")}
		if diff := cmp.Diff([]int{c.post, c.list, c.read, c.posts, c.lists, c.see}, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	server := (&testapi.Backend{}).Serve(t)
	if got := testapi.Do(t, server, "GET", "/theirs/threads", "", "Authorization", "Bearer "+testapi.ReaderToken); got.Status != forbidden {
		t.Errorf("a token that reads other workspaces lists its own: %+v", got)
	}
}

// TestListThreads checks the threads of a page, their titles and the cursor.
func TestListThreads(t *testing.T) {
	b := &testapi.Backend{Summaries: []messages.ThreadSummary{
		{ID: testapi.Thread, Key: "web:ours:" + testapi.Thread, LastAt: testapi.Noon, Messages: 3, First: messages.Message{Content: "\n  first line \nsecond", Version: 1}},
		{ID: testapi.RowID, Key: "slack:acme:C1:1", LastAt: testapi.Noon, Messages: 1, First: messages.Message{Content: strings.Repeat("ä", 81), Version: 1}},
		{ID: testapi.RowID, Key: "slack:acme:C1:2", LastAt: testapi.Noon, First: messages.Message{Content: "[Discord channel:1 user:Al] old", Metadata: []byte(`{"source":"discord"}`)}},
	}}
	got := testapi.Do(t, b.Serve(t), "GET", "/threads?limit=3&before=5-7", "", "Authorization", "Bearer "+testapi.AnyToken)
	at := testapi.Noon.Format(time.RFC3339)
	want := map[string]any{"next": b.Summaries[2].Cursor(), "threads": []any{
		map[string]any{"thread_id": testapi.Thread, "key": "web:ours:" + testapi.Thread, "title": "first line", "last_at": at, "messages": 3.0},
		map[string]any{"thread_id": testapi.RowID, "key": "slack:acme:C1:1", "title": strings.Repeat("ä", 79) + "…", "last_at": at, "messages": 1.0},
		map[string]any{"thread_id": testapi.RowID, "key": "slack:acme:C1:2", "title": "old", "last_at": at, "messages": 0.0},
	}}
	if diff := cmp.Diff(testapi.Answer{Status: 200, Body: want}, got); diff != "" || b.Asked != "ours/5-7" {
		t.Errorf("asked for %s: %s", b.Asked, diff)
	}
}

// TestSourceBesideMetadata checks that a source beside the metadata is merged into it before
// the validation, and that every other byte stays.
func TestSourceBesideMetadata(t *testing.T) {
	const rest = `"sender_id":"irc:al","sender_display_name":"Al","sender_type":"human","n":1.50`
	for name, c := range map[string]struct {
		token, members string
		faults         []string
		stored         string
	}{
		"absent inside":      {testapi.AnyToken, `"source":"irc","metadata":{` + rest + `}`, nil, `{"source":"irc",` + rest + `}`},
		"null inside":        {testapi.AnyToken, `"source":"irc","metadata":{"source":null,` + rest + `}`, nil, `{"source":"irc",` + rest + `}`},
		"the same inside":    {testapi.AnyToken, `"metadata":{"source":"irc",` + rest + `},"source":"irc"`, nil, `{"source":"irc",` + rest + `}`},
		"another one inside": {testapi.AnyToken, `"source":"irc","metadata":{"source":"slack",` + rest + `}`, []string{"source"}, ""},
		"no metadata":        {testapi.AnyToken, `"source":"irc"`, []string{"metadata.sender_id", "metadata.sender_display_name", "metadata.sender_type"}, ""},
		"no text":            {testapi.AnyToken, `"source":7,"metadata":{` + rest + `}`, []string{"source", "metadata.source"}, ""},
		"own":                {testapi.OwnToken, `"source":"web"`, nil, `"sender_id":"web:olivia"`},
		"own, another":       {testapi.OwnToken, `"source":"irc"`, []string{"metadata.source"}, ""},
	} {
		b := &testapi.Backend{Result: testapi.Stored}
		got := testapi.Do(t, b.Serve(t), "POST", "/messages", `{"content":"hi",`+c.members+`}`, "Authorization", "Bearer "+c.token)
		if diff := cmp.Diff(c.faults, got.Faults()); diff != "" {
			t.Errorf("%s: %+v %s", name, got, diff)
		}
		if c.stored == "" {
			continue
		}
		if body, err := payload.ReadBody(b.Accepted[0].Body); err != nil || !strings.Contains(string(body.Metadata), c.stored) {
			t.Errorf("%s: stored %s, want %s", name, body.Metadata, c.stored)
		}
	}
}

// TestAttachments checks that the bytes of attachments are stored before the durable accept,
// and that the envelope has the places of the copies.
func TestAttachments(t *testing.T) {
	b := &testapi.Backend{Result: testapi.Stored}
	server := b.Serve(t)
	post := func(attachments string) testapi.Answer {
		t.Helper()
		return testapi.Do(t, server, "POST", "/messages", `{"content":"","thread_id":"`+testapi.Thread+`","attachments":`+attachments+`}`)
	}
	if got := post(`[{"name":"a.txt","mime_type":"text/plain","data":"aGVsbG8="}]`); got.Status != 202 {
		t.Fatalf("%+v", got)
	}
	if len(b.Files) != 1 || b.Files[0].Name != "a.txt" || string(b.Files[0].Data) != "hello" || strings.Contains(string(b.Accepted[0].Body), "aGVsbG8=") {
		t.Errorf("stored %+v, accepted %s", b.Files, b.Accepted[0].Body)
	}
	e, err := payload.Normalizer{}.Normalize(t.Context(), b.Accepted[0], nil)
	want := []event.Attachment{{ID: "abcd", Name: "a.txt", MimeType: "text/plain", Size: 5, Copy: &event.Copy{Bucket: "b", Path: "ab/abcd"}}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, e.Message.Attachments); diff != "" {
		t.Error(diff)
	}
	one := `{"name":"a","data":"aGk="}`
	for attachments, field := range map[string]string{
		`{}`:                               "attachments",
		`[{"data":"aGk="}]`:                "attachments",
		`[{"name":"a"}]`:                   "attachments",
		`[{"name":"a","data":"not base"}]`: "attachments",
		`[{"name":"a","url":"http://x"}]`:  "attachments[0].url",
		`[{"name":"a","data":"aGk=","bucket":"b","path":"ab/abcd"}]`: "attachments[0]",
		`[` + strings.Repeat(one+",", 10) + one + `]`:                "attachments",
	} {
		if got := post(attachments); got.Status != 400 || cmp.Diff([]string{field}, got.Faults()) != "" {
			t.Errorf("%s: %+v", attachments, got)
		}
	}
	for _, c := range []struct {
		err  error
		want int
	}{{fmt.Errorf("x: %w", attach.ErrTooLarge), 400}, {attach.ErrOtherContent, 400}, {errors.New("the disk is full"), 503}} {
		before := len(b.Accepted)
		if b.Unkept = c.err; post(`[`+one+`]`).Status != c.want || len(b.Accepted) != before {
			t.Errorf("%v: want %d and no envelope", c.err, c.want)
		}
		if ours := slices.ContainsFunc(b.Faults, func(err error) bool { return errors.Is(err, c.err) }); ours != (c.want == 503) {
			t.Errorf("%v: the faults are %v", c.err, b.Faults)
		}
	}
}
