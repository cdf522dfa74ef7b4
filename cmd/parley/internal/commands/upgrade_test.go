package commands

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage/schema"
)

// recordEnv is the environment variable with which TestStoreOfTheFirstVersion writes its recipe. Only a program whose
// schema has version 1 can do so.
const recordEnv = "PARLEY_RECORD_STORE"

// recipeFile has a recipe.
const recipeFile = "testdata/store_1.json"

// recipe has the rows of a store that the first version left when it was killed.
type recipe struct {
	At     int64                       `json:"at"`     // when it was made, in milliseconds
	Tables map[string][]map[string]any `json:"tables"` // a blob is {"base64": …}
}

// garden is Slack, and a model that answers "About " and the last message. It hangs while held is not closed if a
// message contains "slow".
type garden struct {
	t      *testing.T
	slack  *slacktest.Server
	model  *httptest.Server
	asked  chan string // the bodies of slow requests
	held   chan struct{}
	mu     sync.Mutex
	inputs []string
}

func startGarden(t *testing.T) *garden {
	slack, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slack.Close() })
	g := &garden{t: t, slack: slack, asked: make(chan string, 100), held: make(chan struct{})}
	g.model = httptest.NewServer(http.HandlerFunc(g.answer))
	t.Cleanup(g.model.Close)
	return g
}

// answer answers a request to the model.
func (g *garden) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return // the daemon died
	}
	var asked struct {
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(body, &asked); err != nil || len(asked.Messages) == 0 {
		g.t.Errorf("%s: %v", body, err)
		return
	}
	g.mu.Lock()
	g.inputs = append(g.inputs, string(body))
	g.mu.Unlock()
	last := asked.Messages[len(asked.Messages)-1].Content
	if strings.Contains(last, "slow") {
		g.asked <- last
		select {
		case <-g.held:
		case <-r.Context().Done():
			return
		}
	}
	_, topic, _ := strings.Cut(last, "about ")
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"It is about %s.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", topic)
}

// folder returns a folder of a configuration on a store; store is empty for the embedded one.
func (g *garden) folder(store string) (dir string) {
	dir = g.t.TempDir()
	if store != "" {
		store = "store: " + store + "\n"
	}
	write(g.t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\n"+store+"agents: [{id: m, kind: openai, model: m, base_url: \""+g.model.URL+"/v1\"}]\n")
	write(g.t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: m\nturns: {coalesce: 0s}\npolicy: {follow_threads: true}\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+g.slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s}\n")
	write(g.t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: m\nweb: {tokens: [{id: a, token: "+webToken+", name: c, posts: [acme]}]}\n")
	return dir
}

// say sends a message to a daemon as Slack does.
func (g *garden) say(address string, m slacktest.Message) {
	g.t.Helper()
	body := m.Event()
	if strings.Contains(m.Text, "<@"+slacktest.BotUser+">") {
		body = m.Mention()
	}
	request, err := slacktest.NewRequest(g.t.Context(), "http://"+address+"/hooks/slack/acme", "kill-signing-5f0d1c", time.Now(), body)
	if err != nil {
		g.t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = got.Body.Close()
	if got.StatusCode != http.StatusOK {
		g.t.Fatalf("the daemon answers %s", got.Status)
	}
}

// posts waits until Slack has n posts, and returns their texts with their threads, sorted.
func (g *garden) posts(n int) (texts []string) {
	g.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		list := g.slack.Posts()
		if len(list) < n && time.Now().Before(deadline) {
			continue
		}
		for _, p := range list {
			text := p.Text
			if text == "" {
				text = p.Markdown
			}
			texts = append(texts, p.Channel+" "+p.ThreadTS+" "+text)
		}
		slices.Sort(texts)
		return texts
	}
}

// expect compares the posts.
func (g *garden) expect(want ...string) {
	g.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, g.posts(len(want))); diff != "" {
		g.t.Fatal(diff)
	}
}

// slow waits until a slow request has come.
func (g *garden) slow() {
	g.t.Helper()
	select {
	case <-g.asked:
	case <-time.After(time.Minute):
		g.t.Fatal("the model was not asked")
	}
}

// mention returns a message to the bot, n seconds after at, which is in milliseconds.
func mention(at int64, n int, text string) slacktest.Message {
	return slacktest.Message{Channel: "C0GARDEN", User: "U0MARA", Text: "<@" + slacktest.BotUser + "> " + text, TS: fmt.Sprintf("%d.%06d", at/1000, 100*n)}
}

// The messages of the store of the first version, by the time of its making.
func tulips(at int64) slacktest.Message { return mention(at, 1, "tell about tulips") }
func water(at int64) slacktest.Message  { return mention(at, 2, "be slow about water") }
func aside(at int64) slacktest.Message {
	return slacktest.Message{Channel: "C0GARDEN", User: "U0MARA", Text: "nobody asked", TS: fmt.Sprintf("%d.000300", at/1000)}
}

// TestStoreOfTheFirstVersion opens a store that the first version left when it was killed. A waiting message is
// answered once, a post that waited is posted once, a thread is still followed with its history, and commands read
// the old data.
func TestStoreOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	if os.Getenv(recordEnv) != "" {
		recordStore(t)
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			g := startGarden(t)
			close(g.held)
			store := ""
			if engine == "postgres" {
				store = postgrestest.URL(t)
			}
			dir := g.folder(store)
			if store == "" {
				store = filepath.Join(dir, "data/parley.db")
			}
			at := cook(t, engine, store)
			planted := tulips(at).TS
			if got := parley(t, dir, "check", "--offline"); got.status != 0 {
				t.Fatalf("%+v", got)
			}
			daemon := start(t, dir, os.Args[0], "run")
			address := daemon.address()
			waited := []string{"C0GARDEN " + water(at).TS + " It is about water.", "C0GARDEN  good morning"}
			g.expect(waited...)
			g.say(address, slacktest.Message{Channel: "C0GARDEN", User: "U0MARA", Text: "more about roses", TS: slacktest.Timestamp(time.Now()), ThreadTS: planted})
			g.expect(append(waited, "C0GARDEN "+planted+" It is about roses.")...)
			g.mu.Lock()
			if last := g.inputs[len(g.inputs)-1]; !strings.Contains(last, "It is about tulips.") || !strings.Contains(last, "tell about tulips") {
				t.Errorf("the thread's history is not in %s", last)
			}
			g.mu.Unlock()
			for command, want := range map[string]string{"runs --json": planted, "why C0GARDEN/" + aside(at).TS: "mention", "threads": "C0GARDEN", "dead": "broken"} {
				if got := parley(t, dir, strings.Fields(command)...); got.status != 0 || !strings.Contains(got.stdout, want) {
					t.Errorf("%s lacks %q: %+v", command, want, got)
				}
			}
		})
	}
}

// recordStore writes the recipe.
func recordStore(t *testing.T) {
	g := startGarden(t)
	dir, at := g.folder(""), time.Now().UnixMilli()
	daemon := start(t, dir, os.Args[0], "run")
	address := daemon.address()
	g.say(address, tulips(at))
	g.expect("C0GARDEN " + tulips(at).TS + " It is about tulips.")
	g.say(address, aside(at))
	g.say(address, slacktest.Message{Channel: "C0GARDEN", User: "U0MARA", TS: "broken"})
	g.say(address, water(at))
	g.slow()
	g.slack.Script("chat.postMessage", slacktest.RateLimited(time.Minute), slacktest.RateLimited(time.Minute))
	conversation{t, address}.at(http.MethodPost, "/api/v1/workspaces/acme/posts", `{"to":{"channel":"C0GARDEN"},"content":"good morning","key":"k"}`)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(parley(t, dir, "dead").stdout, "broken"); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no dead letter")
		}
	}
	if err := daemon.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.cmd.Wait() // killed by the test
	db, err := sql.Open("sqlite", filepath.Join(dir, "data/parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	all := recipe{at, map[string][]map[string]any{}}
	for _, table := range column[string](t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'search%'
		AND name NOT IN ('schema_migrations', 'exclusive_leases', 'unfinished_copy')`) {
		if rows := rowsOf(t, db, table); len(rows) > 0 {
			all.Tables[table] = rows
		}
	}
	raw, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(recipeFile, append(raw, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// column returns the only column of a query.
func column[T any](t *testing.T, db *sql.DB, query string) (list []T) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// blob is a value of bytes in the recipe.
type blob struct {
	Base64 []byte `json:"base64"`
}

// rowsOf returns the rows of a table, without the columns that are null.
func rowsOf(t *testing.T, db *sql.DB, table string) (list []map[string]any) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, to := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, value := range values {
			if raw, ok := value.([]byte); ok {
				value = blob{raw}
			}
			if value != nil {
				row[names[i]] = value
			}
		}
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// cook makes a store of the first version by the recipe, as if it had been made a minute ago. It returns when the recipe
// was made.
func cook(t *testing.T, engine, store string) (at int64) {
	t.Helper()
	raw, err := os.ReadFile(recipeFile)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var all recipe
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	var first schema.Step
	var exec func(query string, args ...any) error
	if engine == "sqlite" {
		first = sqlite.Steps()[0]
		if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", store)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		exec = func(query string, args ...any) error {
			_, err := db.ExecContext(t.Context(), query, args...)
			return err
		}
	} else {
		first = postgres.Steps()[0]
		db, err := pgx.Connect(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close(t.Context()) }()
		exec = func(query string, args ...any) error {
			_, err := db.Exec(t.Context(), query, args...)
			return err
		}
	}
	run := func(query string, args ...any) {
		t.Helper()
		if err := exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query[:min(len(query), 200)], err)
		}
	}
	run(first.Text)
	run(`CREATE TABLE schema_migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`)
	run(`INSERT INTO schema_migrations VALUES (1, $1, 0)`, first.Name)
	later := time.Now().UnixMilli() - all.At - time.Minute.Milliseconds()
	for table, rows := range all.Tables {
		for _, row := range rows {
			names := slices.Sorted(maps.Keys(row))
			var places []string
			var values []any
			for i, name := range names {
				places, values = append(places, fmt.Sprintf("$%d", i+1)), append(values, valueOf(t, row[name], later))
			}
			run("INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(places, ", ")+")", values...)
		}
	}
	if engine == "postgres" {
		run(`DO $$ DECLARE c record; BEGIN
			FOR c IN SELECT table_name t, column_name n FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES' LOOP
				EXECUTE format('SELECT setval(pg_get_serial_sequence(%L, %L), coalesce(max(%I), 0) + 1, false) FROM %I', c.t, c.n, c.n, c.t);
			END LOOP; END $$`)
	}
	return all.At
}

// isTime reports whether a number of the recipe is a time, in milliseconds. No id and no size is as high.
func isTime(n int64) bool { return n > 1_700_000_000_000 && n < 2_500_000_000_000 }

// valueOf returns a value of the recipe for a store; later is added to times.
func valueOf(t *testing.T, value any, later int64) any {
	t.Helper()
	switch v := value.(type) {
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			t.Fatal(err)
		}
		if isTime(n) {
			n += later
		}
		return n
	case map[string]any:
		var b blob
		raw, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(raw, &b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Base64
	default:
		return value
	}
}

// nextVersion builds a program whose schema has one more step than this one's.
func nextVersion(t *testing.T) (program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it builds a program")
	}
	dir := t.TempDir()
	write(t, dir, "next.sql", "ALTER TABLE threads ADD COLUMN trial INTEGER NOT NULL DEFAULT 0;\nCREATE TABLE trial (id INTEGER PRIMARY KEY);\n")
	steps, err := filepath.Abs("../../../../ingest/journal/storage/schema/steps")
	if err != nil {
		t.Fatal(err)
	}
	step := fmt.Sprintf("%s/%04d_trial.sql", steps, len(sqlite.Steps())+1)
	raw, err := json.Marshal(map[string]any{"Replace": map[string]string{step: filepath.Join(dir, "next.sql")}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "overlay.json", string(raw))
	program = filepath.Join(dir, "parley-next")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "parley/cmd/parley")
	if words, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, words)
	}
	return program
}

// TestNextVersion kills a daemon during a run and starts the next version on its store, which says before what it will
// do. With PostgreSQL, it starts beside a node of this version, and both work. The run is answered once. A daemon of
// this version is then refused.
func TestNextVersion(t *testing.T) {
	t.Parallel()
	next := nextVersion(t)
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			g := startGarden(t)
			shared := ""
			if engine == "postgres" {
				shared = postgrestest.URL(t)
			}
			dir, at := g.folder(shared), time.Now().UnixMilli()
			first := start(t, dir, os.Args[0], "run")
			from := first.address()
			g.say(from, tulips(at))
			planted := tulips(at).TS
			want := []string{"C0GARDEN " + planted + " It is about tulips."}
			g.expect(want...)
			g.say(from, water(at))
			g.slow()
			if got := runProgram(t, next, dir, "check"); got.status != 0 || !strings.Contains(got.stderr, "_trial.sql") {
				t.Errorf("%+v", got)
			}
			if engine == "sqlite" {
				if err := first.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = first.cmd.Wait() // killed by the test
			}
			other := dir
			if shared != "" {
				other = g.folder(shared)
			}
			second := start(t, other, next, "run")
			address := second.address()
			close(g.held)
			want = append(want, "C0GARDEN "+water(at).TS+" It is about water.")
			g.expect(want...)
			if shared != "" { // both versions work on the thread of the other
				for i, at := range []string{from, address, from, address} {
					g.say(at, slacktest.Message{Channel: "C0GARDEN", User: "U0MARA", Text: fmt.Sprintf("more about n%d", i), TS: slacktest.Timestamp(time.Now()), ThreadTS: planted})
					want = append(want, fmt.Sprintf("C0GARDEN %s It is about n%d.", planted, i))
					g.expect(want...)
				}
				first.signal(os.Interrupt)
				first.end()
			}
			second.signal(os.Interrupt)
			second.end()
			if got := parley(t, dir, "run"); got.status == 0 || !strings.Contains(got.stderr, "newer program") {
				t.Errorf("%+v", got)
			}
			if got := runProgram(t, next, other, "check"); got.status != 0 || strings.Contains(got.stderr, "_trial.sql") {
				t.Errorf("%+v", got)
			}
		})
	}
}
