package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestParleyWithTheClient uses the real binary.
func TestParleyWithTheClient(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts the daemon")
	}
	dir, token := t.TempDir(), "a-token-of-the-web-client-1"
	binary := filepath.Join(dir, "parley")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "parley/cmd/parley").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	for name, content := range map[string]string{
		"parley.yaml":        "listen: " + address + "\nagents: [{id: echo, kind: echo}]\n",
		"workspaces/us.yaml": "id: us\nplatform: web\nagent: echo\nweb: {tokens: [{id: me, token: " + token + ", name: Me}]}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, binary: binary, dir: dir}
	d.start()
	for end := time.Now().Add(time.Minute); ; {
		response, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			_ = response.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	var out strings.Builder
	if err := playClient(t.Context(), []string{"-url", "http://" + address, "-token", token, "-text", "hello\nthere"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	rest := out.String()
	for _, step := range []string{
		"# make a thread", "201 Created", "# send a file", `"mime_type":"image/png"`, "# start a run", "202 Accepted", `"taskId"`,
		"# follow the run", "QUESTION hello ⏎ there", "ANSWER hello ⏎ there", "COMPLETE", "# read the history", `"scope":"history_day"`, `"role":"assistant"`,
		"# read the file under its new link", "200 OK, image/png, 70 bytes",
	} {
		_, after, found := strings.Cut(rest, step)
		if !found {
			t.Fatalf("no %q after\n%s", step, out.String()[:out.Len()-len(rest)])
		}
		rest = after
	}
	if err := playClient(t.Context(), []string{"-url", "http://" + address, "-token", "wrong"}, &out); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong token: %v", err)
	}
	d.stop()
}
