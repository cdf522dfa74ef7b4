package commands

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the recordings")

//go:generate go test -count=1 -run ^TestRecordings$ . -update

// TestRecordings plays the fakes with a daemon and a scripted model, and compares the lines on the person's screen with the
// pictures of the documentation.
func TestRecordings(t *testing.T) {
	programs := builtPrograms(t)
	const question, context = "when did we say?", "the roses want water tomorrow at nine"
	for _, c := range []struct {
		platform, title string
		lines           []string // that the person types; the last one is a question
		grows           bool     // people see the answer before it is complete
		why             bool     // also record why the first line got no answer
	}{
		{"slack", "parley-fake slack", []string{"#garden: " + context, "#garden: <@U0BOT> " + question}, true, true},
		{"discord", "parley-fake discord", []string{"> " + context + ". " + question}, true, false},
		{"bluebubbles", "parley-fake bluebubbles", []string{"#group: " + context, "#group: parley, " + question}, false, false},
	} {
		t.Run(c.platform, func(t *testing.T) {
			t.Parallel()
			p := newRecording(t, programs, c.platform)
			for i, line := range c.lines {
				p.say(line)
				if i < len(c.lines)-1 {
					p.settle(i + 1)
				}
			}
			if c.grows {
				p.await("At nine")
			}
			p.rest <- "tomorrow."
			p.await("At nine, tomorrow.")
			p.compare(c.platform, c.title)
			if c.why {
				p.shown = nil
				p.why()
				p.compare("why", "parley why")
			}
		})
	}
}

// recording is a fake in a terminal, with a daemon and a model whose answer has two parts.
type recording struct {
	*reader
	keys  io.Writer
	lines chan string // of the fake
	shown []shownLine
	rest  chan string // the second part of the model's answer
}

func newRecording(t *testing.T, programs programs, platform string) *recording {
	p := &recording{reader: newReader(t, page{}, programs), lines: make(chan string, 1000), rest: make(chan string)}
	model := httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(model.Close)
	write(t, p.dir, "parley.yaml", p.complete("agents: [{id: assistant, kind: openai, model: m, base_url: \""+model.URL+"/v1\"}]\n"))
	fake := p.command("exec parley-fake " + platform + " --write workspaces/" + platform + ".yaml --agent assistant")
	keys, err := fake.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := fake.StdoutPipe()
	if err == nil {
		err = fake.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.keys = keys
	t.Cleanup(func() { _, _ = keys.Close(), fake.Wait() })
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
		close(p.lines)
	}()
	p.await("quit")
	p.begin(block{}, "exec parley run")
	p.until("parley status --json || true", `"state":"up"`, 1)
	p.shown = []shownLine{{typed: true, text: "$ go run ./cmd/parley-fake " + platform + " --write workspaces/" + platform + ".yaml --agent assistant"}, {text: "…"}}
	return p
}

// answer is the model.
func (p *recording) answer(w http.ResponseWriter, r *http.Request) {
	part := func(text string) {
		raw, _ := json.Marshal(text) // a text always encodes
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", raw)
		w.(http.Flusher).Flush()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	part("At nine, ")
	select {
	case rest := <-p.rest:
		part(rest)
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	case <-r.Context().Done():
	}
}

// say types a line into the fake.
func (p *recording) say(line string) {
	p.shown = append(p.shown, shownLine{typed: true, text: line})
	_, _ = io.WriteString(p.keys, line+"\n")
}

// await shows the lines of the fake up to one that contains words.
func (p *recording) await(words string) {
	p.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line, more := <-p.lines:
			if !more {
				p.t.Fatalf("the fake ended without %q", words)
			}
			if !unsteady.MatchString(line) {
				p.shown = append(p.shown, shownLine{text: line})
			}
			if strings.Contains(line, words) {
				return
			}
		case <-late:
			p.t.Fatalf("%q was not shown, after %v", words, p.shown)
		}
	}
}

// unsteady are lines that do not always come, or at different places: the signs of work, and the connection.
var unsteady = regexp.MustCompile(`status: "|typ(es|ing)$|has read it|opens a|session|webhook`)

// settle waits until the store has n messages.
func (p *recording) settle(n int) {
	p.t.Helper()
	p.until("parley tail --once --json", `"what":"decided"`, n)
}

// until repeats a command until it prints a text so many times.
func (p *recording) until(command, text string, n int) {
	p.t.Helper()
	for strings.Count(p.printed, text) < n && p.t.Context().Err() == nil {
		p.run(block{}, command)
	}
}

// why asks why the first message got no answer.
func (p *recording) why() {
	p.t.Helper()
	p.run(block{}, "parley threads list --json")
	keys := regexp.MustCompile(`"slack:fake-slack:(\w+):([\d.]+)"`).FindAllStringSubmatch(p.printed, -1)
	channel, at := keys[len(keys)-1][1], keys[len(keys)-1][2] // the oldest
	link := "https://acme.slack.com/archives/" + channel + "/p" + strings.ReplaceAll(at, ".", "")
	p.run(block{}, "parley why "+link)
	p.shown = append(p.shown, shownLine{typed: true, text: "$ parley why https://acme.slack.com/archives/" + channel + "/p1795754356388078"})
	for line := range strings.Lines(strings.ReplaceAll(p.printed, at, "1795754356.388078")) {
		p.shown = append(p.shown, shownLine{text: strings.TrimRight(line, "\n")})
	}
}

// The parts of the lines that change from run to run.
var (
	clocks = regexp.MustCompile(`\d\d:\d\d:\d\d(\.\d+)?`)
	days   = regexp.MustCompile(`20\d\d-\d\d-\d\d`)
	after  = regexp.MustCompile(`\b\d+ ms\b`)
)

// compare compares the shown lines with a picture, or makes it.
func (p *recording) compare(name, title string) {
	p.t.Helper()
	for i, line := range p.shown {
		text := clocks.ReplaceAllString(line.text, "09:39:16$1")
		text = regexp.MustCompile(`(09:39:16)\.\d+`).ReplaceAllString(text, "$1.388")
		p.shown[i].text = after.ReplaceAllString(days.ReplaceAllString(text, "2026-11-27"), "3 ms")
	}
	got, path := draw(title, p.shown), filepath.Join(repository, ".github/pictures/terminal", name+".svg")
	if *update {
		write(p.t, filepath.Dir(path), filepath.Base(path), got)
		return
	}
	want, err := os.ReadFile(path)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); err != nil || diff != "" {
		p.t.Errorf("%s is another, %v (go generate ./cmd/parley makes it):\n%s", path, err, diff)
	}
}
