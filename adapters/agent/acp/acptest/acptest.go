// Package acptest is a program that speaks the Agent Client Protocol, with faults. A test's own binary is that program: see Main.
package acptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Variable is the environment variable that makes a test's binary the program. Its value lists the abilities of the program: "resume", "load", "image",
// "files", "modes", "options", "login", "old", "mute", "stays" after the end of
// its input, or none of them.
const Variable = "PARLEY_ACP_FAKE"

// Main is called by a test's TestMain. It does not return if the process is the program.
func Main() {
	if can, is := os.LookupEnv(Variable); is {
		p := &program{can: strings.Fields(can), out: bufio.NewWriter(os.Stdout), waiting: map[string]chan json.RawMessage{}, cancels: make(chan struct{}, 100), current: map[string]string{"mode": "code", "model": "small"}}
		p.serve()
		os.Exit(0)
	}
}

// program is the program in its process.
type program struct {
	can     []string
	session string
	current map[string]string

	mu      sync.Mutex
	out     *bufio.Writer
	next    int
	waiting map[string]chan json.RawMessage
	cancels chan struct{}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (p *program) write(m map[string]any) {
	m["jsonrpc"] = "2.0"
	raw, _ := json.Marshal(m)
	p.line(string(raw))
}

func (p *program) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.out, text)
	p.out.Flush()
}

func (p *program) serve() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && slices.Contains(p.can, "stays") {
			select {}
		}
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch {
		case m.Method == "":
			p.mu.Lock()
			answer := p.waiting[string(m.ID)]
			p.mu.Unlock()
			if answer != nil {
				if m.Error != nil {
					m.Result = m.Error
				}
				answer <- m.Result
			}
		case m.Method == "session/cancel":
			p.cancels <- struct{}{}
		case m.Method == "session/prompt":
			go func() { p.answer(m.ID, p.prompt(m.Params)) }()
		default:
			p.call(m)
		}
	}
}

func (p *program) answer(id json.RawMessage, result any) {
	if fault, is := result.(error); is {
		p.write(map[string]any{"id": id, "error": map[string]any{"code": -32603, "message": fault.Error()}})
		return
	}
	p.write(map[string]any{"id": id, "result": result})
}

// call answers a request that is no prompt.
func (p *program) call(m message) {
	var params struct {
		SessionID string `json:"sessionId"`
		ModeID    string `json:"modeId"`
		ConfigID  string `json:"configId"`
		Value     string `json:"value"`
		CWD       string `json:"cwd"`
	}
	_ = json.Unmarshal(m.Params, &params)
	has := func(what string) bool { return slices.Contains(p.can, what) }
	switch m.Method {
	case "initialize":
		if has("mute") {
			return
		}
		capabilities := map[string]any{
			"loadSession":        has("load"),
			"promptCapabilities": map[string]bool{"image": has("image"), "embeddedContext": has("files")},
			"mcpCapabilities":    map[string]bool{"http": has("tools")},
		}
		if has("resume") {
			capabilities["sessionCapabilities"] = map[string]any{"resume": map[string]any{}}
		}
		result := map[string]any{"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": map[string]string{"name": "fake", "version": "7"}, "x": 1}
		if has("login") {
			result["authMethods"] = []any{map[string]string{"id": "key", "name": "Log in", "description": "by a key"}}
		}
		if has("old") {
			result["protocolVersion"] = 0
		}
		p.answer(m.ID, result)
	case "session/new":
		if has("login") {
			p.write(map[string]any{"id": m.ID, "error": map[string]any{"code": -32000, "message": "Authentication required"}})
			return
		}
		p.session = fmt.Sprintf("s-%d-%d", os.Getpid(), time.Now().UnixNano())
		p.remember("")
		p.answer(m.ID, p.offers(map[string]any{"sessionId": p.session}))
	case "session/load", "session/resume":
		if _, err := os.Stat(p.file(params.SessionID)); err != nil {
			p.answer(m.ID, fmt.Errorf("no such session"))
			return
		}
		p.session = params.SessionID
		if m.Method == "session/load" {
			for _, said := range p.memory() {
				p.update(map[string]any{"sessionUpdate": "user_message_chunk", "content": text(said)})
				p.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": text("replayed " + said)})
			}
		}
		p.answer(m.ID, p.offers(map[string]any{}))
	case "session/set_mode":
		p.current["mode"] = params.ModeID
		p.answer(m.ID, map[string]any{})
	case "session/set_config_option":
		p.current[params.ConfigID] = params.Value
		p.answer(m.ID, p.offers(map[string]any{}))
	default:
		p.write(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "method not found"}})
	}
}

// offers adds the modes and options that the program has.
func (p *program) offers(to map[string]any) map[string]any {
	if slices.Contains(p.can, "modes") {
		to["modes"] = map[string]any{"currentModeId": p.current["mode"], "availableModes": []any{
			map[string]string{"id": "code", "name": "Write code"}, map[string]string{"id": "ask", "name": "Only ask"},
		}}
	}
	if slices.Contains(p.can, "options") {
		to["configOptions"] = []any{
			map[string]any{"type": "slider", "id": "heat", "currentValue": 3},
			map[string]any{"type": "select", "id": "model", "name": "Model", "category": "model", "currentValue": p.current["model"], "options": []any{
				map[string]any{"name": "All", "options": []any{map[string]string{"value": "small", "name": "Small"}, map[string]string{"value": "large", "name": "Large"}}},
			}},
		}
	}
	return to
}

func (p *program) file(session string) string { return "session-" + filepath.Base(session) }

func (p *program) remember(said string) {
	f, err := os.OpenFile(p.file(p.session), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if said != "" {
		fmt.Fprintf(f, "%q\n", said)
	}
}

func (p *program) memory() (said []string) {
	raw, _ := os.ReadFile(p.file(p.session))
	for line := range strings.Lines(string(raw)) {
		one, _ := strconv.Unquote(strings.TrimSpace(line))
		said = append(said, one)
	}
	return said
}

func (p *program) update(u map[string]any) {
	p.write(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": p.session, "update": u}})
}

func text(words string) map[string]any { return map[string]any{"type": "text", "text": words} }

// ask makes a request and returns its result, or its error.
func (p *program) ask(method string, params map[string]any) string {
	params["sessionId"] = p.session
	p.mu.Lock()
	p.next++
	id, answer := fmt.Sprintf(`"r%d"`, p.next), make(chan json.RawMessage, 1)
	p.waiting[id] = answer
	p.mu.Unlock()
	p.write(map[string]any{"id": json.RawMessage(id), "method": method, "params": params})
	return string(<-answer)
}

// prompt does what the lines of the last text of the prompt say, and returns the result of session/prompt. A header before a line does not matter.
func (p *program) prompt(params json.RawMessage) any {
	var in struct {
		Prompt []struct {
			Type, Text, Name, URI, MimeType string
			Data                            string
			Resource                        struct{ Text, Blob string }
		}
		Meta struct{ Traceparent string } `json:"_meta"`
	}
	_ = json.Unmarshal(params, &in)
	last, kinds := "", []string{}
	for _, b := range in.Prompt {
		kinds = append(kinds, b.Type)
		if b.Type == "text" {
			last = b.Text
		}
	}
	for len(p.cancels) > 0 {
		<-p.cancels
	}
	before := p.memory()
	p.remember(last)
	say := func(words string) {
		p.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": text(words)})
	}
	stop := "end_turn"
	for line := range strings.Lines(last) {
		line = strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(line, "]: "); ok && strings.HasPrefix(line, "[") {
			line = rest
		}
		verb, rest, _ := strings.Cut(line, " ")
		id, title, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(rest)
		switch verb {
		case "say":
			say(rest)
		case "think":
			p.update(map[string]any{"sessionUpdate": "agent_thought_chunk", "content": text(rest)})
		case "plan":
			p.update(map[string]any{"sessionUpdate": "plan", "entries": []any{
				map[string]string{"content": "read", "status": "completed", "priority": "high"}, map[string]string{"content": rest, "status": "in_progress", "priority": "low"},
			}})
		case "tool":
			p.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "edit", "status": "pending", "rawInput": map[string]string{"path": "a.go"}})
		case "done":
			p.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "content": []any{map[string]any{"type": "content", "content": text("secret output")}}})
		case "ask":
			say("asked " + outcome(p.ask("session/request_permission", map[string]any{
				"toolCall": map[string]any{"toolCallId": id, "title": title, "kind": "execute", "rawInput": map[string]string{"command": title}},
				"options": []any{
					map[string]string{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, map[string]string{"optionId": "ever", "name": "Always allow", "kind": "allow_always"},
					map[string]string{"optionId": "no", "name": "Reject", "kind": "reject_once"},
				},
			})) + ". ")
		case "read": // a file of the client
			say(p.ask("fs/read_text_file", map[string]any{"path": "/etc/passwd"}))
		case "recall":
			say(fmt.Sprintf("%d before", len(before)))
		case "blocks":
			say(strings.Join(kinds, " "))
		case "prompted":
			raw, _ := json.Marshal(in.Prompt)
			say(string(raw))
		case "place": // in a trace
			say(in.Meta.Traceparent + ".")
		case "env":
			env := os.Environ()
			slices.Sort(env)
			for i := range env {
				env[i], _, _ = strings.Cut(env[i], "=")
			}
			say(strings.Join(env, " "))
		case "now":
			say(p.current["mode"] + " " + p.current["model"])
		case "mode":
			p.current["mode"] = rest
			p.update(map[string]any{"sessionUpdate": "current_mode_update", "currentModeId": rest})
		case "hold": // until a cancel, unless the file is there from an earlier time
			if _, err := os.Stat(rest); err != nil {
				_ = os.WriteFile(rest+".new", fmt.Append(nil, os.Getpid()), 0o600)
				_ = os.Rename(rest+".new", rest)
				<-p.cancels
			}
		case "pid":
			say(fmt.Sprint(os.Getpid()))
		case "child": // of the program, in its group
			c := exec.Command("sleep", "600")
			_ = c.Start()
			say(fmt.Sprint(c.Process.Pid))
		case "wait":
			<-p.cancels
			stop = "cancelled"
		case "deaf": // also to a cancel
			select {}
		case "words":
			fmt.Fprintln(os.Stderr, rest)
		case "exit":
			os.Exit(n)
		case "mute":
			_ = os.Stdout.Close()
			select {}
		case "junk":
			p.line("this is no JSON")
			p.line(`{"jsonrpc":"2.0"}`)
			p.line(`[]`)
			p.line("")
		case "unknown":
			p.update(map[string]any{"sessionUpdate": "brand_new", "content": 5})
			p.write(map[string]any{"method": "_vendor/news", "params": 1})
			p.write(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "other", "update": map[string]any{"sessionUpdate": "agent_message_chunk", "content": text("of another session")}}})
		case "line": // of n MiB
			p.flood(n, "")
		case "lines":
			p.flood(n, "\n")
		case "fail":
			return fmt.Errorf("%s", rest)
		case "stop":
			stop = rest
		}
	}
	return map[string]any{"stopReason": stop, "usage": map[string]int{"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}}
}

// flood writes n MiB, each with an end.
func (p *program) flood(n int, end string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	piece := strings.Repeat("x", 1<<20) + end
	for range n {
		if _, err := p.out.WriteString(piece); err != nil {
			os.Exit(9)
		}
	}
}

// outcome returns the chosen option of an answer, or the outcome.
func outcome(result string) string {
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal([]byte(result), &r)
	if r.Outcome.OptionID != "" {
		return r.Outcome.OptionID
	}
	return r.Outcome.Outcome
}
