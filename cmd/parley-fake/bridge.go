package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/adapters/httpcall"
	"parley/cmd/internal/command"
	"parley/ingest/wake"
)

// The secrets of the program, and the channel of the person's conversation with the bot.
const (
	bridgeToken  = "fake-bridge-token-7f3a9c51d2e8"
	bridgeSecret = "fake-bridge-secret-4b60a1c35e97"
	bridgeDirect = "you"
)

const bridgeHelp = `  > text            write to the bot
  #room: text       write in a room; a text that begins with parley: calls the bot
  ^ number text     reply to the bot's post with this number
  edit text         edit your last message
  delete            delete your last message
  react 👍          add a reaction to the bot's last post
  press number      press a button of the bot's last post with buttons
  away on|off       answer the daemon with 503
  quit
`

// fakeBridge is a program that connects a chat with one person, as adapters/web/bridge/README.md describes it.
type fakeBridge struct {
	terminal
	hook   string
	client *http.Client
	heard  chan map[string]any // the requests for the daemon, in order

	mu       sync.Mutex
	away     bool
	ids      int
	last     map[string]any // the person's last message
	answered bridgeRequest  // the bot's last post
	asks     bridgeRequest  // the bot's last post with buttons
	posts    []bridgeRequest
}

// bridgeRequest is a request of the daemon.
type bridgeRequest struct {
	Type, ID, Channel, Thread, Content string
	Message, Emoji, Text               string
	InReplyTo                          string `json:"in_reply_to"`
	On                                 bool
	Buttons                            []bridgeButton
	Card                               struct {
		Parts []struct{ Buttons []bridgeButton }
	}
	File struct{ Name string }
}

type bridgeButton struct{ ID, Label, URL string }

// buttons returns the buttons of a post and of its card that can be pressed.
func (r *bridgeRequest) buttons() (all []bridgeButton) {
	for _, part := range r.Card.Parts {
		all = append(all, part.Buttons...)
	}
	return slices.DeleteFunc(append(slices.Clone(r.Buttons), all...), func(b bridgeButton) bool { return b.ID == "" })
}

// playBridge plays the program until the input ends, the person types quit, or ctx ends.
func playBridge(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var listen, url string
	var file workspaceFile
	err := command.ParseFlags("bridge", args, func(flags *flag.FlagSet) {
		flags.StringVar(&listen, "listen", "127.0.0.1:8700", "address of this program")
		flags.StringVar(&url, "url", "http://127.0.0.1:8484", "address of the daemon")
		file.flags(flags)
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s := &fakeBridge{
		terminal: terminal{out: out}, hook: url + "/hooks/bridge/fake-bridge", client: &http.Client{Timeout: 30 * time.Second},
		heard: make(chan map[string]any, 1000),
	}
	defer s.client.CloseIdleConnections()
	server := &http.Server{Handler: http.HandlerFunc(s.take), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // Close ends it
	defer server.Close()
	text := file.text("fake-bridge", "bridge", fmt.Sprintf(`bridge:
  token: %s
  deliver: {url: "http://%s", secret: %s}
  format: markdown
  edits: true
  buttons: true
  working: true
  reactions: true
`, bridgeToken, listener.Addr(), bridgeSecret))
	said, err := file.save(text)
	if err != nil {
		return err
	}
	s.printf("%s%s\n%s", text, said, bridgeHelp)
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { s.tell(ctx) })
	defer telling.Wait()
	defer cancel()
	eachLine(ctx, in, s.do)
	return nil
}

// do executes one typed line. It prints the help for a line that it does not know.
func (s *fakeBridge) do(line string) {
	name, text, _ := strings.Cut(line, " ")
	room, isRoom := strings.CutPrefix(strings.TrimSuffix(name, ":"), "#")
	s.mu.Lock()
	last, answered, asks := s.last, s.answered, s.asks
	s.mu.Unlock()
	lastID := func() any { return last["id"] }
	switch {
	case name == ">":
		s.say(bridgeDirect, "", text)
	case isRoom && room != "":
		s.say("#"+room, "", text)
	case name == "^":
		number, text, _ := strings.Cut(text, " ")
		if post := s.post(number); post.ID != "" {
			s.say(post.Channel, post.ID, text)
		} else {
			s.printf("there is no post %q\n", number)
		}
	case name == "edit" && last != nil:
		s.hear(map[string]any{"type": "edit", "id": lastID(), "content": text, "sent_at": time.Now()})
	case line == "delete" && last != nil:
		s.hear(map[string]any{"type": "delete", "id": lastID()})
	case name == "react" && text != "" && answered.ID != "":
		s.hear(map[string]any{"type": "reaction", "id": answered.ID, "emoji": text, "metadata": bridgeYou, "sent_at": time.Now()})
	case name == "press":
		n, _ := strconv.Atoi(text)
		buttons := asks.buttons()
		if n < 1 || n > len(buttons) {
			s.printf("there is no button %q\n", text)
			return
		}
		s.hear(s.in(asks.Channel, map[string]any{
			"type": "press", "id": s.newID(), "post": asks.ID, "button": buttons[n-1].ID, "content": buttons[n-1].Label, "metadata": bridgeYou,
		}))
	case name == "away":
		s.mu.Lock()
		s.away = text != "off"
		s.mu.Unlock()
	case line != "":
		s.printf("%s", bridgeHelp)
	}
}

// bridgeYou is the metadata of the person at the terminal.
var bridgeYou = map[string]any{"sender_id": "you", "sender_display_name": "You", "sender_type": "human"}

// post returns the bot's post with a number; the zero value if there is none.
func (s *fakeBridge) post(number string) (post bridgeRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, _ := strconv.Atoi(number); n >= 1 && n <= len(s.posts) {
		post = s.posts[n-1]
	}
	return post
}

func (s *fakeBridge) newID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return fmt.Sprintf("%d-%d", time.Now().UnixNano(), s.ids)
}

// in adds the channel to a request.
func (s *fakeBridge) in(channel string, request map[string]any) map[string]any {
	kind := "room"
	if channel == bridgeDirect {
		kind = "direct"
	}
	request["channel"] = map[string]string{"id": channel, "type": kind}
	return request
}

// say sends a message of the person.
func (s *fakeBridge) say(channel, replyTo, text string) {
	called, isCalled := strings.CutPrefix(text, "parley:")
	message := s.in(channel, map[string]any{
		"id": s.newID(), "content": strings.TrimSpace(called), "mentioned": isCalled, "metadata": bridgeYou, "sent_at": time.Now(),
	})
	if replyTo != "" {
		message["reply_to"] = replyTo
	}
	s.mu.Lock()
	s.last = message
	s.mu.Unlock()
	s.hear(message)
}

func (s *fakeBridge) hear(request map[string]any) {
	select {
	case s.heard <- request:
	default:
		s.printf("too many messages wait for the daemon\n")
	}
}

// tell sends the requests to the daemon, each until it is accepted.
func (s *fakeBridge) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case request := <-s.heard:
			body, _ := json.Marshal(request) // texts, times and flags always encode
			told := ""
			for {
				done, err := s.send(ctx, body)
				if done || ctx.Err() != nil {
					break
				}
				if words := err.Error(); told == "" {
					told = words
					s.printf("the daemon does not take that now: %s\n", words)
				}
				if !wake.After(ctx, time.Second) {
					return
				}
			}
		}
	}
}

// send sends a request once. done says that another try is useless.
func (s *fakeBridge) send(ctx context.Context, body []byte) (done bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.hook, bytes.NewReader(body))
	if err != nil {
		return true, err
	}
	request.Header.Set("Authorization", "Bearer "+bridgeToken)
	response, err := s.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	switch {
	case response.StatusCode/100 == 2:
		return true, nil
	case response.StatusCode == http.StatusBadRequest, response.StatusCode == http.StatusRequestEntityTooLarge:
		s.printf("the daemon refuses that: %s\n", oneLine(string(answer)))
		return true, nil
	}
	return false, fmt.Errorf("%s", response.Status)
}

// take takes a request of the daemon.
func (s *fakeBridge) take(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	want, _ := httpcall.Sign(bridgeSecret, r.Header.Get("X-Parley-Timestamp"), bytes.NewReader(body))
	var asked bridgeRequest
	s.mu.Lock()
	away := s.away
	s.mu.Unlock()
	switch {
	case !hmac.Equal([]byte(want), []byte(r.Header.Get("X-Parley-Signature"))):
		w.WriteHeader(http.StatusUnauthorized)
	case away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case json.Unmarshal(body, &asked) != nil:
		w.WriteHeader(http.StatusBadRequest)
	default:
		w.WriteHeader(s.show(asked))
	}
}

// show prints what a request does, once for each post, and returns the status of the answer.
func (s *fakeBridge) show(asked bridgeRequest) int {
	s.mu.Lock()
	number := slices.IndexFunc(s.posts, func(p bridgeRequest) bool { return p.ID == asked.ID }) + 1
	known := number > 0 && asked.ID != ""
	isNew := asked.Type == "post" && !known
	if isNew {
		s.posts, s.answered = append(s.posts, asked), asked
		number = len(s.posts)
	}
	if asked.Type == "remove" && known {
		s.posts[number-1].ID = "" // it is gone
	}
	if len(asked.buttons()) > 0 && (isNew || asked.Type == "edit") {
		s.asks = asked
	}
	s.mu.Unlock()
	place := cmp.Or(map[string]string{bridgeDirect: "direct"}[asked.Channel], asked.Channel)
	text := oneLine(asked.Content)
	for i, b := range asked.buttons() {
		text += fmt.Sprintf(" [%d %s]", i+1, b.Label)
	}
	if asked.File.Name != "" {
		text += " (file " + asked.File.Name + ")"
	}
	switch {
	case isNew:
		s.printf("%s: the bot posts [%d]: %s\n", place, number, text)
	case asked.Type == "edit" && known:
		s.printf("%s: the bot edits [%d]: %s\n", place, number, text)
	case asked.Type == "remove" && known:
		s.printf("%s: the bot removes [%d]\n", place, number)
	case asked.Type == "working" && asked.On:
		s.printf("%s: the bot is at work\n", place)
	case asked.Type == "working":
		s.printf("%s: the bot is done\n", place)
	case asked.Type == "react":
		s.printf("%s: the bot reacts with %s\n", place, asked.Emoji)
	case asked.Type == "edit":
		return http.StatusNotFound
	}
	return http.StatusOK
}
