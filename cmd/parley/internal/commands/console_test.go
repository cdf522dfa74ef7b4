package commands

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"
)

// TestConsole logs in at the address that the command prints. Two daemons of one machine share the
// default address: the second one goes on without a console, and the command says what to do.
func TestConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: 127.0.0.1:0}\n")
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	got := parley(t, dir, "console", "--print")
	page, ticket, ok := strings.Cut(strings.TrimSpace(got.stdout), "#")
	if got.status != 0 || !ok {
		t.Fatalf("%+v", got)
	}
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	response, err := client.PostForm(page, url.Values{"ticket": {ticket}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	words, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK || !strings.Contains(string(words), `data-test="workspace-ours"`) {
		t.Errorf("%d %s", response.StatusCode, words)
	}

	other := t.TempDir()
	serveOperators(t, other)
	address, _ := url.Parse(page)
	write(t, other, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: "+address.Host+"}\n")
	q := start(t, other, os.Args[0], "run")
	q.await("parley is ready")
	if got := parley(t, other, "console", "--print"); got.status != 1 || !strings.Contains(got.stderr, "console.listen") {
		t.Errorf("without an address: %+v", got)
	}
	for _, one := range []*process{p, q} {
		one.signal(os.Interrupt)
		one.end()
	}
}
