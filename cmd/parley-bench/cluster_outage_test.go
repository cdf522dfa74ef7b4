package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnOutageIsOverWhenTheServerAnswers(t *testing.T) {
	b, d := newTestDatabase(t)
	defer b.close(t.Context())
	path := filepath.Join(b.work, "outage")
	o := &outage{command: "echo no such cluster >&2; exit 3"}
	if o.during(time.Now()) {
		t.Error("it has begun by itself")
	}
	if err := o.run(t.Context(), d, path); err == nil || !strings.Contains(err.Error(), "no such cluster") {
		t.Errorf("a command that fails: %v", err)
	}
	begun := time.Now()
	if !o.during(begun) {
		t.Error("it is over, and nobody has seen the server")
	}
	o.command = "true"
	if err := o.run(t.Context(), d, path); err != nil {
		t.Fatal(err)
	}
	if !o.during(begun) || o.during(time.Now()) || o.String() == "" {
		t.Errorf("it was from %v to %v", o.begun, o.ended)
	}
}
