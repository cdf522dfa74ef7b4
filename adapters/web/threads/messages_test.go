package threads_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/web/internal/testapi"
	"parley/adapters/web/payload"
	"parley/adapters/web/threads"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	journalthreads "parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// TestListMessages checks the messages of a page: a tombstone, a reply with its sequence
// numbers, a notice, and a row from before the ingest contract.
func TestListMessages(t *testing.T) {
	r := testapi.Working(t)
	r.Say(5, testapi.Said(stream.Answer, "hi"))
	r.Reply("hi")
	for seq := 3; seq <= 6; seq++ {
		r.Do("POST", "/messages", fmt.Sprintf(`{"content":"more %d","passive":true,"thread_id":"%s"}`, seq, testapi.Thread))
	}
	path := "/threads/" + testapi.Thread + "/messages"
	got := r.Do("GET", "/threads/"+strings.ToUpper(testapi.Thread)+"/messages?after=1&limit=2", "")
	var lines []string
	for _, m := range got.Body["messages"].([]any) {
		m := m.(map[string]any)
		lines = append(lines, fmt.Sprint(m["thread_seq"], " ", m["role"], " ", m["content"]))
	}
	if diff := cmp.Diff([]string{"2 assistant hi", "3 user more 3"}, lines); got.Status != 200 || diff != "" || got.Body["next"] != 3.0 {
		t.Errorf("%+v %s", got, diff)
	}
	if back := r.Do("GET", path+"?before=6&limit=2", ""); back.Body["next"] != 4.0 {
		t.Errorf("backwards: %v", back.Body)
	}
	if last := r.Do("GET", path, ""); last.Body["next"] != nil || len(last.Body["messages"].([]any)) != 6 {
		t.Errorf("all: %v", last.Body)
	}
}

// TestViewOfAMessage checks the form of a tombstone, of a reply with its sequence numbers, of a notice, and of a row from before the
// ingest contract.
func TestViewOfAMessage(t *testing.T) {
	at := testapi.Noon.Format(time.RFC3339)
	for want, m := range map[string]messages.Listed{
		`{"id":"m1","thread_seq":4,"role":"user","sender_id":"web:olivia","content":"","metadata":{},"attachments":[],"trigger":"run","reason":"direct",` +
			`"run":{"id":"run-1","state":"failed","error":"Sorry.","cause":"no route to host"},"created_at":"` + at + `","deleted_at":"` + at + `"}`: {
			Message: messages.Message{Seq: 4, UUID: "m1", SenderID: "web:olivia", Author: messages.ByHuman, Version: 1, Trigger: messages.TriggerRun,
				Reason: "direct", CreatedAt: testapi.Noon, DeletedAt: testapi.Noon, Metadata: []byte("{}")}, Asked: &messages.Asked{ID: "run-1", State: "failed", Error: "Sorry.", Cause: "no route to host"}},
		`{"id":"r1","thread_seq":5,"role":"assistant","sender_id":"agent:helper","content":"hi","metadata":{},"attachments":[],"trigger":"none","created_at":"` + at +
			`","run_id":"run","base_seq":3,"latest_seen_seq":3,"server_seq_at_submit":4,"stale":true,"stale_lag":1}`: {
			Message: messages.Message{Seq: 5, UUID: "r1", SenderID: "agent:helper", Author: messages.ByAgent, Version: 1, Trigger: messages.TriggerNone,
				Content: "hi", CreatedAt: testapi.Noon, Metadata: []byte("{}"), Run: "run"}, Freshness: &messages.Freshness{Known: event.Known{BaseSeq: new(int64(3)), LatestSeenSeq: new(int64(3))}, ServerSeq: 4}},
		`{"id":"n1","thread_seq":6,"role":"system","kind":"notice","sender_id":"system:parley","content":"Sorry.","metadata":{},"attachments":[],"trigger":"none","created_at":"` + at +
			`","run_id":"run-1"}`: {
			Message: messages.Message{Seq: 6, UUID: "n1", SenderID: "system:parley", Author: messages.BySystem, Version: 1, Trigger: messages.TriggerNone,
				Content: "Sorry.", CreatedAt: testapi.Noon, Metadata: []byte("{}"), Run: "run-1"}},
		`{"id":"o1","thread_seq":7,"role":"user","sender_id":"slack:U1","content":"hello","metadata":{"source":"slack"},"attachments":[],"trigger":"none","created_at":"` + at + `"}`: {
			Message: messages.Message{Seq: 7, UUID: "o1", SenderID: "slack:U1", Author: messages.ByHuman, Trigger: messages.TriggerNone,
				Content: "[Slack channel:C1 user:Olivia] hello", CreatedAt: testapi.Noon, Metadata: []byte(`{"source":"slack"}`)}},
	} {
		got, err := json.Marshal(threads.View(&m))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
}

// TestOnlyAnIntegrationSeesTheCause of a failed run; everybody sees the sentence of the notice.
func TestOnlyAnIntegrationSeesTheCause(t *testing.T) {
	r := testapi.Working(t)
	r.GiveUp("Sorry.")
	for token, cause := range map[string]any{testapi.OwnToken: nil, testapi.AnyToken: "no route to host", testapi.ReaderToken: nil} {
		got := r.Do("GET", "/threads/"+testapi.Thread+"/messages", "", "Authorization", "Bearer "+token)
		run := got.Body["messages"].([]any)[0].(map[string]any)["run"].(map[string]any)
		if run["error"] != "Sorry." || run["cause"] != cause {
			t.Errorf("%s: %v", token, run)
		}
	}
}

// TestListErrors checks the faults of a query, and the store's errors.
func TestListErrors(t *testing.T) {
	api := testapi.New(t)
	list := "/threads/" + testapi.Thread + "/messages"
	for query, fields := range map[string][]string{"?after=-1&before=x&limit=0": {"after", "before", "limit"}, "?limit=501": {"limit"}, "?after=x": {"after"}} {
		if got := api.Do("GET", list+query, ""); got.Status != 400 || cmp.Diff(fields, got.FaultyFields()) != "" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := api.Do("GET", "/threads/mine/messages", ""); got.Status != 400 {
		t.Errorf("without a UUID: %+v", got)
	}
	if got := api.Do("GET", list, ""); got.Status != 404 {
		t.Errorf("an unknown thread: %+v", got)
	}
	if got := api.Do("GET", "/threads?before=x", "", "Authorization", "Bearer "+testapi.AnyToken); got.Status != 400 || cmp.Diff([]string{"before"}, got.FaultyFields()) != "" {
		t.Errorf("a faulty position: %+v", got)
	}
	api.Broken.Store(true)
	defer api.Broken.Store(false)
	for _, path := range []string{list, "/threads"} {
		if got := api.Do("GET", path, "", "Authorization", "Bearer "+testapi.AnyToken); got.Status != 503 {
			t.Errorf("%s of a broken store: %+v", path, got)
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
		api := testapi.New(t)
		api.Do("POST", "/messages", `{"content":"hi","thread_id":"`+testapi.Thread+`"}`)
		elsewhere := threadOfAcme(api)
		call := func(method, path string) int {
			body := ""
			if method == "POST" {
				body = `{"content":"hi","metadata":` + testapi.CRMJSON + `}`
				if c.token == testapi.OwnToken {
					body = `{"content":"hi"}`
				}
			}
			return api.Do(method, path, body, "Authorization", "Bearer "+c.token).Status
		}
		got := []int{call("POST", "/messages"), call("GET", "/threads"), call("GET", "/threads/"+testapi.Thread+"/messages"),
			call("POST", "/acme/messages"), call("GET", "/acme/threads"), call("GET", "/acme/threads/"+elsewhere+"/messages")}
		if diff := cmp.Diff([]int{c.post, c.list, c.read, c.posts, c.lists, c.see}, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if got := testapi.New(t).Do("GET", "/theirs/threads", "", "Authorization", "Bearer "+testapi.ReaderToken); got.Status != forbidden {
		t.Errorf("a token that reads other workspaces lists its own: %+v", got)
	}
}

// threadOfAcme makes a thread of a workspace on another platform, and returns its UUID.
func threadOfAcme(api *testapi.API) string {
	api.Helper()
	t, _, err := api.Journal.Threads.MakeThread(api.Context(), "slack", "C1", journalthreads.Thread{Workspace: "acme", Key: "slack:acme:C1:1", Mode: journalthreads.ModeOpen})
	if err != nil {
		api.Fatal(err)
	}
	return t.ID
}

// TestListThreads checks the threads of a page, their titles and the cursor.
func TestListThreads(t *testing.T) {
	api := testapi.New(t)
	post := func(thread, content string) {
		api.Do("POST", "/messages", `{"content":`+content+`,"passive":true,"thread_id":"`+thread+`"}`)
	}
	post(testapi.Other, `"`+strings.Repeat("ä", 81)+`"`)
	api.At(time.Minute)
	post(testapi.Thread, `"\n  first line \nsecond"`)
	post(testapi.Thread, `"third"`)
	row := func(thread, title string, after time.Duration, count float64) map[string]any {
		return map[string]any{"thread_id": thread, "key": "web:ours:" + thread, "title": title, "last_at": testapi.Noon.Add(after).Format(time.RFC3339), "messages": count}
	}
	first, second := row(testapi.Thread, "first line", time.Minute, 2), row(testapi.Other, strings.Repeat("ä", 79)+"…", 0, 1)
	got := api.Do("GET", "/threads?limit=1", "", "Authorization", "Bearer "+testapi.AnyToken)
	next, _ := got.Body["next"].(string)
	if diff := cmp.Diff(testapi.Answer{Status: 200, Body: map[string]any{"next": next, "threads": []any{first}}}, got); diff != "" || next == "" {
		t.Errorf("next %q: %s", next, diff)
	}
	got = api.Do("GET", "/threads?before="+next, "", "Authorization", "Bearer "+testapi.AnyToken)
	if diff := cmp.Diff(testapi.Answer{Status: 200, Body: map[string]any{"next": nil, "threads": []any{second}}}, got); diff != "" {
		t.Error(diff)
	}
	if title := threads.Title(&messages.Message{Content: "[Discord channel:1 user:Al] old", Metadata: []byte(`{"source":"discord"}`)}); title != "old" {
		t.Errorf("the title of a row from before the ingest contract is %q", title)
	}
}

// TestSourceBesideMetadata checks that a source beside the metadata is merged into it before
// the validation, and that every other byte stays.
func TestSourceBesideMetadata(t *testing.T) {
	const rest = `"sender_id":"irc:al","sender_display_name":"Al","sender_type":"human","n":1.50`
	api := testapi.New(t)
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
		got := api.Do("POST", "/messages", `{"content":"hi",`+c.members+`}`, "Authorization", "Bearer "+c.token)
		if diff := cmp.Diff(c.faults, got.FaultyFields()); diff != "" {
			t.Errorf("%s: %+v %s", name, got, diff)
		}
		if c.stored == "" {
			continue
		}
		accepted := api.Accepted()
		if body, err := payload.ReadBody(accepted[len(accepted)-1].Body); err != nil || !strings.Contains(string(body.Metadata), c.stored) {
			t.Errorf("%s: stored %s, want %s", name, body.Metadata, c.stored)
		}
	}
}

// TestAttachments checks that the bytes of attachments are stored before the durable accept,
// and that the message has the places of the copies.
func TestAttachments(t *testing.T) {
	api := testapi.New(t)
	post := func(attachments string) testapi.Answer {
		t.Helper()
		return api.Do("POST", "/messages", `{"content":"","thread_id":"`+testapi.Thread+`","attachments":`+attachments+`}`)
	}
	if got := post(`[{"name":"a.txt","mime_type":"text/plain","data":"aGVsbG8="}]`); got.Status != 202 {
		t.Fatalf("%+v", got)
	}
	list, err := api.Journal.Messages.ThreadMessages(t.Context(), "ours", testapi.Thread, messages.Page{Limit: 1})
	if err != nil || len(list) != 1 || len(list[0].Attachments) != 1 {
		t.Fatal(list, err)
	}
	file := list[0].Attachments[0]
	kept, err := os.ReadFile(filepath.Join(api.FilesDir, file.Path))
	if err != nil || string(kept) != "hello" || file.State != files.Stored || file.Name != "a.txt" || file.Size != 5 || strings.Contains(string(api.Accepted()[0].Body), "aGVsbG8=") {
		t.Errorf("%q, %v: %+v", kept, err, file)
	}
	one := `{"name":"a","data":"aGk="}`
	for attachments, field := range map[string]string{
		`{}`:                               "attachments",
		`[{"data":"aGk="}]`:                "attachments",
		`[{"name":"a"}]`:                   "attachments",
		`[{"name":"a","data":"not base"}]`: "attachments",
		`[{"name":"a","url":"http://x"}]`:  "attachments[0].url",
		`[{"name":"a","data":"aGk=","bucket":"b","path":"ab/abcd"}]`:                       "attachments[0]",
		`[` + strings.Repeat(one+",", 10) + one + `]`:                                      "attachments",
		`[{"name":"a","data":"` + strings.Repeat("aGkh", 400) + `"}]`:                      "attachments[0].data", // 1200 bytes
		`[{"name":"a.png","mime_type":"image/png","data":"PGh0bWw+PGJvZHk+aGk8L2JvZHk+"}]`: "attachments[0].data", // a page
	} {
		if got := post(attachments); got.Status != 400 || cmp.Diff([]string{field}, got.FaultyFields()) != "" {
			t.Errorf("%s: %+v", attachments, got)
		}
	}
	before, drafts := len(api.Accepted()), filepath.Join(api.FilesDir, "incoming")
	if err := errors.Join(os.RemoveAll(drafts), os.WriteFile(drafts, nil, 0o600)); err != nil { // no file can be written there any more
		t.Fatal(err)
	}
	if got := post(`[` + one + `]`); got.Status != 503 || got.Body["error"].(map[string]any)["code"] != "files-unavailable" {
		t.Errorf("without a place for files: %+v", got)
	}
	if len(api.Accepted()) != before {
		t.Error("a message without its files was accepted")
	}
}
