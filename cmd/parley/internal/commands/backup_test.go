package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/storage"
)

const oursYAML = "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: " + webToken + ", name: c}]}\n"

// restored returns the numbers of messages by their content, of a store in a folder.
func restored(t *testing.T, path string) map[string]int {
	t.Helper()
	engine, found := open(t, path), map[string]int{}
	defer done(t, engine)
	err := engine.Read(t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			var content string
			err := scan(&content)
			found[content]++
			return err
		}, `SELECT content FROM messages WHERE author = 'human'`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestBackupDuringLoad: a daemon takes messages while a backup is made. Each that was acknowledged before is
// restored, once. Kills during backups and restores leave nothing that is half made.
func TestBackupDuringLoad(t *testing.T) {
	dir, limit := t.TempDir(), 60*time.Second
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n")
	write(t, dir, "workspaces/ours.yaml", oursYAML)
	daemon := start(t, dir, os.Args[0], "run")
	ours := conversation{t, daemon.address()}
	var mu sync.Mutex
	var acknowledged []string
	var writers sync.WaitGroup
	stop, some := make(chan struct{}), make(chan struct{}, 1<<20)
	begun := time.Now()
	for w := range 6 {
		writers.Go(func() {
			for n := 0; n < 5000 && time.Since(begun) < limit; n++ {
				content := fmt.Sprintf("message %d of writer %d %s", n, w, strings.Repeat("x", 400))
				body, _ := json.Marshal(map[string]any{"thread_id": fmt.Sprintf("6ba7b810-9dad-41d1-80b4-00c04fd430%02d", w), "content": content, "passive": true}) // it encodes
				ours.call(http.MethodPost, "messages", string(body))
				mu.Lock()
				acknowledged = append(acknowledged, content)
				mu.Unlock()
				some <- struct{}{}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 300 {
		<-some
	}
	killed := exec.CommandContext(t.Context(), os.Args[0], "backup", "a.tar.zst")
	killed.Dir, killed.Env = dir, append(os.Environ(), "PARLEY_COMMAND=1")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	<-some
	_ = killed.Process.Kill() // at any time
	_ = killed.Wait()
	_ = os.Remove(filepath.Join(dir, "a.tar.zst")) // it was fast

	mu.Lock()
	before := append([]string(nil), acknowledged...)
	mu.Unlock()
	got := parley(t, dir, "backup", "a.tar.zst", "--json")
	expect(t, got, 0, `"schema":`, "")
	close(stop)
	writers.Wait()
	rate := float64(len(acknowledged)) / time.Since(begun).Seconds()
	var made operator.Backup
	if err := json.Unmarshal([]byte(got.stdout), &made); err != nil {
		t.Fatal(err)
	}
	daemon.signal(syscall.SIGTERM)
	daemon.end()
	t.Logf("%d messages at %.0f/s; %d acknowledged before the backup", len(acknowledged), rate, len(before))

	expect(t, parley(t, dir, "backup", "verify", "a.tar.zst"), 0, "the backup is whole", "")
	expect(t, parley(t, dir, "backup", "a.tar.zst"), 1, "", "a.tar.zst exists")
	expect(t, parley(t, dir, "restore", "a.tar.zst"), 1, "", "there is a database already")
	killedRestores(t, dir)
	expect(t, parley(t, dir, "restore", "a.tar.zst", "--to", "sqlite:new/parley.db", "--json"), 0, made.SHA256, "")
	found := restored(t, filepath.Join(dir, "new/parley.db"))
	for _, content := range before {
		if found[content] != 1 {
			t.Fatalf("%.30s is there %d times", content, found[content])
		}
	}
	if n := int64(len(found)); n != made.Tables["messages"] {
		t.Errorf("%d messages are restored, and the backup has %d", n, made.Tables["messages"])
	}
}

// killedRestores kills restores at different times. The place is then empty.
func killedRestores(t *testing.T, dir string) {
	t.Helper()
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond} {
		p := exec.CommandContext(t.Context(), os.Args[0], "restore", "a.tar.zst", "--to", "sqlite:killed/parley.db")
		p.Dir, p.Env = dir, append(os.Environ(), "PARLEY_COMMAND=1")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(after)
		_ = p.Process.Kill() // at any time
		_ = p.Wait()
		path := filepath.Join(dir, "killed/parley.db")
		if _, err := os.Stat(path); err == nil {
			restored(t, path) // it was fast, and is whole
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + end)
			}
		}
	}
	expect(t, parley(t, dir, "restore", "a.tar.zst", "--to", "sqlite:killed/parley.db", "-q"), 0, "restored as it was at", "")
}

// TestBackupWithoutADaemon reads the store itself, and says so.
func TestBackupWithoutADaemon(t *testing.T) {
	dir := t.TempDir()
	expect(t, parley(t, dir, "backup", "a.tar.zst"), 4, "", "no daemon runs")
	note(t, filepath.Join(dir, "data/parley.db"), 17)
	expect(t, parley(t, dir, "backup", "a.tar.zst"), 0, "verified", "(daemon stopped)")
	t.Setenv("PLACE", "new/parley.db")
	expect(t, parley(t, dir, "restore", "a.tar.zst", "--to", "sqlite:${PLACE}"), 0, "restored", "")
	expect(t, parley(t, dir, "restore", "a.tar.zst", "--to", "mysql:x"), 2, "", "--to must be")
	expect(t, parley(t, dir, "restore", "missing.tar.zst", "--to", "sqlite:x.db"), 1, "", "missing.tar.zst")
	expect(t, parley(t, dir, "copy-store", "sqlite:new/parley.db", "sqlite:b.db"), 0, "retention_progress: 1 row\n", "")
}
