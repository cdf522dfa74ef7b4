package commands

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/cmd/parley/internal/doctor"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

const modelKey = "sk-canary-2f61c09d"

// modelList is the server of a model m that needs modelKey.
func modelList(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+modelKey {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided"}}`)
			return
		}
		if !strings.HasSuffix(r.URL.Path, "/models") {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"message":"The model does not exist"}}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
	}))
	t.Cleanup(server.Close)
	return server
}

// freeAddress returns an address at which nothing listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// examine runs doctor and returns its checks by name, the worst one of each.
func examine(t *testing.T, dir string, status int, args ...string) map[string]doctor.Check {
	t.Helper()
	got := parley(t, dir, append([]string{"doctor", "--json"}, args...)...)
	var result struct{ Checks []doctor.Check }
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil || got.status != status {
		t.Fatalf("%d, want %d; %v\n%s%s", got.status, status, err, got.stdout, got.stderr)
	}
	if strings.Contains(got.stdout+got.stderr, "canary") {
		t.Errorf("a secret is shown:\n%s", got.stdout)
	}
	worst := map[string]doctor.Check{}
	for _, c := range result.Checks {
		if before, ok := worst[c.Name]; !ok || doctor.Worst([]doctor.Check{before, c}) != before.State {
			worst[c.Name] = c
		}
	}
	return worst
}

// TestDoctor examines a daemon that is well, and then with one trouble after the other.
func TestDoctor(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	server := startSlack(t, dir, "acme", without("acme", ""))
	main := func(key, model string) {
		write(t, dir, "parley.yaml", fmt.Sprintf("listen: %s\nagents:\n  - id: echo\n    kind: openai\n    base_url: %s/v1\n    api_key: %s\n    model: %s\n", address, modelList(t).URL, key, model))
	}
	main(modelKey, "m")
	if got := examine(t, dir, 0); got["daemon"].State != doctor.Warning || got["store"].State != doctor.OK || got["agent echo"].State != doctor.OK {
		t.Errorf("before the first start: %+v", got)
	}
	start(t, dir, os.Args[0], "run").address()
	got := examine(t, dir, 0)
	for _, name := range []string{"configuration", "store", "daemon", "workspace acme", "agent echo", "clock", "files"} {
		if got[name].State != doctor.OK {
			t.Errorf("%s: %+v", name, got[name])
		}
	}
	if _, ok := got["disk"]; !ok || got["backup"].State != doctor.Warning {
		t.Errorf("nothing about the disk or the backup: %+v", got)
	}

	main("sk-canary-wrong", "m")
	if c := examine(t, dir, 1)["agent echo"]; c.State != doctor.Fault || c.Key != "agents[0].api_key" || c.File != "parley.yaml" || c.Line != 6 {
		t.Errorf("a wrong key: %+v", c)
	}
	if checked := parley(t, dir, "check"); checked.status != 1 || !strings.Contains(checked.stdout, "parley.yaml:6: agents[0].api_key: ") {
		t.Errorf("check: %+v", checked)
	}
	main(modelKey, "unknown")
	if c := examine(t, dir, 1)["agent echo"]; c.State != doctor.Fault || c.Key != "agents[0].model" || c.Line != 7 {
		t.Errorf("an unknown model: %+v", c)
	}
	main(modelKey, "m")
	server.Revoke()
	if c := examine(t, dir, 1)["workspace acme"]; c.State != doctor.Fault || c.File != "workspaces/acme.yaml" {
		t.Errorf("a refused token: %+v", c)
	}
	write(t, dir, "parley.yaml", "listne: x\n")
	if got := examine(t, dir, 1); got["configuration"].Key != "listne" || got["configuration"].Line != 1 {
		t.Errorf("a fault of the configuration: %+v", got)
	}
}

// TestDoctorOfFiles proves that doctor names the files that others can read, and changes them only with --fix.
func TestDoctorOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:1\nmetrics: {token: canary-7f3a9c51d2e84b60a1c35e97}\n")
	if err := os.Chmod(filepath.Join(dir, "parley.yaml"), 0o640); err != nil {
		t.Fatal(err)
	}
	mode := func() os.FileMode {
		info, err := os.Stat(filepath.Join(dir, "parley.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if c := examine(t, dir, 0)["files"]; c.State != doctor.Warning || c.File != "parley.yaml" || mode() != 0o640 {
		t.Errorf("%+v, %v", c, mode())
	}
	if c := examine(t, dir, 0, "--fix")["files"]; c.State != doctor.OK || mode() != 0o600 {
		t.Errorf("%+v, %v", c, mode())
	}
}

// TestDoctorOfPostgreSQL examines an empty database, in which it makes no table, the same one of a running daemon
// whose port the system chose, and one that does not answer.
func TestDoctorOfPostgreSQL(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), postgrestest.URL(t)
	configure := func(url string) { write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nstore: "+url+"\n") }
	configure(store)
	for range 2 {
		got := examine(t, dir, 0)
		if c := got["store"]; c.State != doctor.OK || !strings.Contains(c.Words, "connections used; its tables are made") || got["daemon"].State != doctor.Warning {
			t.Errorf("before the first start: %+v, %+v", c, got["daemon"])
		}
		if got := parley(t, dir, "runs"); got.status != 1 || !strings.Contains(got.stderr, "another schema") {
			t.Errorf("a command makes the tables: %+v", got)
		}
	}
	start(t, dir, os.Args[0], "run").address()
	got := examine(t, dir, 0)
	if c := got["store"]; c.State != doctor.OK || !strings.HasSuffix(c.Words, "connections used") || got["daemon"].State != doctor.OK {
		t.Errorf("%+v, %+v", c, got["daemon"])
	}
	configure("postgres://nobody@" + freeAddress(t) + "/none?sslmode=disable")
	if c := examine(t, dir, 1)["store"]; c.State != doctor.Fault || c.Key != "store" || c.Line != 2 {
		t.Errorf("a server that does not answer: %+v", c)
	}
}

// TestDoctorOfClocks examines a machine whose clock is as its platform's, and one whose clock is wrong.
func TestDoctorOfClocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	real := startSlack(t, dir, "acme", without("acme", ""))
	address, err := url.Parse(real.URL())
	if err != nil {
		t.Fatal(err)
	}
	var shift atomic.Int64 // of the platform's clock
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(time.Duration(shift.Load())).UTC().Format(http.TimeFormat))
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	file, err := os.ReadFile(filepath.Join(dir, "workspaces/acme.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "workspaces/acme.yaml", strings.ReplaceAll(string(file), "http://"+address.Host, front.URL))
	for _, c := range []struct {
		shift  time.Duration
		status int
		state  doctor.State
		words  string
	}{
		{0, 0, doctor.OK, ""}, {-2 * time.Minute, 0, doctor.Warning, " ahead of that of slack"}, {time.Hour, 1, doctor.Fault, " behind that of slack"},
	} {
		shift.Store(int64(c.shift))
		if got := examine(t, dir, c.status)["clock"]; got.State != c.state || !strings.Contains(got.Words, c.words) {
			t.Errorf("shifted by %v: %+v", c.shift, got)
		}
	}
}

// TestDoctorOfDamage overwrites a part of the store.
func TestDoctorOfDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:1\n")
	write(t, dir, "lines.jsonl", `{"id":"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b","workspace":"local","thread_id":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","role":"user","content":"hi","metadata":{},"created_at":"2026-09-21T12:00:00Z"}`+"\n")
	if got := parley(t, dir, "import", "lines.jsonl"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if c := examine(t, dir, 0)["store"]; c.State != doctor.OK || !strings.Contains(c.Words, "1 message") {
		t.Errorf("%+v", c)
	}
	file, err := os.OpenFile(filepath.Join(dir, "data/parley.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	noise := []byte(strings.Repeat("\xa5", 4096))
	for at := int64(40 << 10); at+4096 <= info.Size(); at += 8 << 10 {
		if _, err := file.WriteAt(noise, at); err != nil {
			t.Fatal(err)
		}
	}
	if c := examine(t, dir, 1)["store"]; c.State != doctor.Fault {
		t.Errorf("%+v", c)
	}
}

// TestDoctorOfADamagedLog examines a store whose log was damaged while no daemon ran: before the start, which drops a part of the log, and
// after it.
func TestDoctorOfADamagedLog(t *testing.T) {
	t.Parallel()
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "parley.db")
	write(t, dir, "parley.yaml", "listen: "+freeAddress(t)+"\n")
	engine, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for i := range 20 {
		err := engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
			_, err := tx.Exec(`INSERT INTO adapter_state (workspace, name, value) VALUES ('w', $1, 'x')`, fmt.Sprint(i))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []string{"", "-wal"} {
		left, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if end != "" {
			clear(left[len(left)/2 : len(left)/2+64])
			left[len(left)/2] = 0xa5
		}
		write(t, dir, "data/parley.db"+end, string(left))
	}
	for range 2 {
		if c := examine(t, dir, 1)["store"]; c.State != doctor.Fault || c.Key != "store" {
			t.Errorf("before the start: %+v", c)
		}
	}
	start(t, dir, os.Args[0], "run").address()
	if c := examine(t, dir, 0)["store"]; c.State != doctor.Warning {
		t.Errorf("after the start: %+v", c)
	}
	if err := os.Remove(filepath.Join(dir, "data/parley.db.lost")); err != nil {
		t.Fatal(err)
	}
	if c := examine(t, dir, 0)["store"]; c.State != doctor.OK {
		t.Errorf("without the note: %+v", c)
	}
}
