package sse

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzStream fuzzes event streams. The events do not depend on the pieces in which the stream
// is read, and do not have more bytes than it.
func FuzzStream(f *testing.F) {
	for _, text := range []string{
		"data: a\n\ndata: b\ndata: c\n\n", "\ufeffid: 7\r\ndata:a\r\n\r\n", "data: a\rdata: b\r\r", ": comment\n\nretry: 5\nevent: x\ndata\n\n", "data: no end", "id: a\x00b\ndata: x\n\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := all(strings.NewReader(text))
		pieces, other := all(iotest.OneByteReader(strings.NewReader(text)))
		unix := strings.ReplaceAll(text, "\r\n", "\n")
		lines, third := all(strings.NewReader(unix))
		if !strings.Contains(unix, "\r") && (err != third || strings.Join(whole, "\n") != strings.Join(lines, "\n")) {
			t.Errorf("%q, %v; with LF only %q, %v", whole, err, lines, third)
		}
		if err != other || strings.Join(whole, "\n") != strings.Join(pieces, "\n") {
			t.Errorf("%q, %v; byte by byte %q, %v", whole, err, pieces, other)
		}
		if n := len(strings.Join(whole, "")); n > len(text) {
			t.Errorf("%d bytes of a stream of %d", n, len(text))
		}
	})
}

func all(body io.Reader) (list []string, err error) {
	for stream := NewReader(body, 1<<20); ; {
		event, err := stream.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, event.ID+" "+string(event.Data))
	}
}

// TestALostConnectionCutsNoEvent proves that the beginning of an event is none.
func TestALostConnectionCutsNoEvent(t *testing.T) {
	lost := errors.New("the connection is lost")
	r := NewReader(io.MultiReader(strings.NewReader("data: whole\n\ndata: {\"a\":"), iotest.ErrReader(lost)), 100)
	if e, err := r.Next(); string(e.Data) != "whole" || err != nil {
		t.Errorf("first %q, %v", e.Data, err)
	}
	if e, err := r.Next(); err != lost {
		t.Errorf("then %q, %v", e.Data, err)
	}
}

// TestLongEvents checks an event of more bytes than the bound, in one line and in several.
func TestLongEvents(t *testing.T) {
	for _, text := range []string{"data: 12345678\n\n", "data: 123\ndata: 45678\n\n"} {
		if _, err := NewReader(strings.NewReader(text), 5).Next(); err != ErrLong {
			t.Errorf("%q: %v", text, err)
		}
		r := NewReader(strings.NewReader(text), 5)
		r.Cuts = true
		if e, err := r.Next(); err != nil || !e.Cut || len(e.Data) != 5 {
			t.Errorf("%q: %+v, %v", text, e, err)
		}
	}
}
