package acp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/adapters/agent/remote"
)

// message is a message of JSON-RPC 2.0: a request with a method and an id, a notification with a method alone, or a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// rpcError is the error of a response.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *rpcError) Error() string {
	text := fmt.Sprintf("%s (%d)", cmp.Or(e.Message, "an error without words"), e.Code)
	if len(e.Data) > 0 && string(e.Data) != "null" {
		text += ": " + string(e.Data[:min(len(e.Data), maxWord)])
	}
	return text
}

// The codes of errors: https://agentclientprotocol.com/protocol/schema.
const (
	methodNotFound = -32601
	authRequired   = -32000
)

// waiting bounds the messages that wait to be read from a connection. The program waits while so many do.
const waiting = 8

// conn is a connection to a process, one message a line. One goroutine at a time uses it, beside the one that reads.
type conn struct {
	*child
	messages chan message // closed at the end of the output
	fault    error        // why nothing more is read; read it after messages is closed
	read     atomic.Int64 // bytes since the last prompt
	next     int64        // id
	log      *slog.Logger
}

// connect begins to read the output of a process: lines of at most line bytes, and at most all bytes from one prompt to the next.
func connect(c *child, line int, all int64, log *slog.Logger) *conn {
	x := &conn{child: c, messages: make(chan message, waiting), log: log}
	go func() {
		defer c.out.Close()
		defer close(x.messages)
		lines := lineReader{in: bufio.NewReaderSize(c.out, 64<<10), most: line}
		for {
			raw, err := lines.next()
			if n := x.read.Add(int64(len(raw)) + 1); err == nil && n > all {
				err = errMany
			}
			if err != nil {
				x.fault = err
				c.kill()
				return
			}
			m, ok := decode(raw)
			if !ok {
				if len(bytes.TrimSpace(raw)) > 0 {
					log.Debug("an agent's program writes a line that is no message", "bytes", len(raw))
				}
				continue
			}
			select {
			case x.messages <- m:
			case <-c.done: // a run may still read
				select {
				case x.messages <- m:
				case <-time.After(restTime):
					x.fault = errors.New("the process has ended")
					return
				}
			}
		}
	}()
	return x
}

// decode reads a line. It returns false for a line that is no message, such as a word that a library prints.
func decode(line []byte) (m message, ok bool) {
	if json.Unmarshal(line, &m) != nil {
		return m, false
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	return m, m.Method != "" || m.ID != nil
}

// send writes a message.
func (x *conn) send(m any) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return x.write(append(line, '\n'), replyTime)
}

// request writes a request and returns its id. prove is called directly before; nil for a request without an input.
func (x *conn) request(method string, params any, prove func() error) (id string, sent <-chan error) {
	x.next++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": x.next, "method": method, "params": params})
	if err == nil && prove != nil {
		err = prove()
	}
	done := make(chan error, 1)
	if err != nil {
		done <- err
		return "", done
	}
	x.read.Store(0)
	go func() { done <- x.write(append(line, '\n'), promptTime) }() // the program may read only if its output is read
	return fmt.Sprint(x.next), done
}

// notify writes a notification.
func (x *conn) notify(method string, params any) error {
	return x.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// reply answers a request of the program.
func (x *conn) reply(id json.RawMessage, result any) error {
	return x.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// refuse answers a request of the program with an error.
func (x *conn) refuse(m message) error {
	fault := rpcError{Code: methodNotFound, Message: "method not found: this client offers no " + remote.Plain(m.Method, 60)}
	return x.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": fault})
}

// lost returns the error of a connection that has ended.
func (x *conn) lost() error {
	select {
	case <-x.done:
	case <-time.After(restTime): // it has closed its output, and lives on
		x.kill()
		<-x.done
	}
	if errors.Is(x.fault, errLong) || errors.Is(x.fault, errMany) {
		return x.fault
	}
	return errors.New(x.ended())
}

// await reads messages until the response to a request, or until ctx ends. Each other message goes to take.
func (x *conn) await(ctx context.Context, id string, sent <-chan error, take func(message) error) (json.RawMessage, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-sent:
			if sent = nil; err != nil {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				return nil, err
			}
		case m, ok := <-x.messages:
			switch {
			case !ok:
				return nil, x.lost()
			case m.Method == "" && string(m.ID) == id && m.Error != nil:
				return nil, m.Error
			case m.Method == "" && string(m.ID) == id:
				return m.Result, nil
			}
			if err := take(m); err != nil {
				return nil, err
			}
		}
	}
}

// call makes a request that carries no input, and returns its result. Requests of the program meanwhile are refused.
func (x *conn) call(ctx context.Context, method string, params, result any) error {
	id, sent := x.request(method, params, nil)
	raw, err := x.await(ctx, id, sent, func(m message) error {
		if m.Method != "" && m.ID != nil {
			return x.refuse(m)
		}
		return nil
	})
	if err == nil && result != nil {
		if err = json.Unmarshal(raw, result); err != nil {
			err = fmt.Errorf("the answer to %s cannot be read: %w", method, err)
		}
	}
	return err
}
