package trace_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/trace"
)

const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestParse checks what W3C Trace Context admits.
func TestParse(t *testing.T) {
	for value, ok := range map[string]bool{
		valid: true, strings.TrimSuffix(valid, "1") + "0": true, "cc" + valid[2:]: true, "cc" + valid[2:] + "-what-the-future-adds": true,
		"": false, valid + "-x": false, "ff" + valid[2:]: false, "cc" + valid[2:] + "x": false, strings.ToUpper(valid): false, valid[:54]: false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false, "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
		strings.ReplaceAll(valid, "-", "_"): false, "0-" + valid[1:]: false, "00-0af7651916cd43dd8448eb211c8031-c-b7ad6b7169203331-01": false,
	} {
		p, got := trace.Parse(value)
		if got != ok || !ok && p != (trace.Place{}) || ok && (p.ID() != value[3:35] || hex.EncodeToString(p.Span[:]) != value[36:52] || p.Sampled != strings.HasSuffix(value[:55], "1")) {
			t.Errorf("%q: %v, %v", value, p, got)
		}
		if again, back := trace.Parse(p.String()); ok && (!back || again != p) {
			t.Errorf("%q is written %q", value, p)
		}
	}
}

// TestOrigins checks whose trace a message is in, and who decides whether it is recorded.
func TestOrigins(t *testing.T) {
	id := uuid.Must(uuid.NewV7()).String()
	called := event.WithTraceparent([]byte(`{"source":"x"}`), valid)
	if own := trace.Of(id, "", []byte(`{"source":"x"}`), 1); own.ID() != strings.ReplaceAll(id, "-", "") || !own.Sampled || !own.Caller.IsZero() || own != trace.Of(id, "", nil, 1) {
		t.Errorf("%+v", own)
	}
	if off := trace.Of(id, "", nil, 0); off.Sampled {
		t.Errorf("%+v", off)
	}
	if o := trace.Of(id, "", called, 0); o.ID() != valid[3:35] || !o.Sampled || o.Caller.String()[:52] != valid[:52] || o.Span == o.Caller.Span {
		t.Errorf("%+v", o)
	}
	unsampled := event.WithTraceparent([]byte(`{}`), valid[:53]+"00")
	if o := trace.Of(id, "", unsampled, 1); o.Sampled {
		t.Errorf("%+v", o)
	}
	if o := trace.Of(id, event.InjectedID("a/b", id), called, 0); o.ID() != strings.ReplaceAll(id, "-", "") || !o.Sampled || o.Cause.ID() != valid[3:35] || !o.Caller.IsZero() {
		t.Errorf("%+v", o)
	}
	if o := trace.Of(id, "", event.WithTraceparent([]byte(`{}`), "nonsense"), 1); o.ID() != strings.ReplaceAll(id, "-", "") {
		t.Errorf("%+v", o)
	}
	for _, span := range []string{"0000000000000000", "B7AD6B7169203331"} { // a key of the metadata, which nobody has checked
		given := event.WithTraceparent([]byte(`{}`), valid[:36]+span+"-01")
		if o := trace.Of(id, "", given, 0); o.ID() == valid[3:35] || o.Sampled {
			t.Errorf("%s: %+v", given, o)
		}
	}
	if a, b := trace.Of("import/1", "", nil, 1), trace.Of("import/2", "", nil, 1); a.Trace == b.Trace || a.IsZero() {
		t.Errorf("%+v %+v", a, b)
	}
}

// TestSample checks that about the part of the traces is recorded, for UUIDs of both kinds that messages have.
func TestSample(t *testing.T) {
	const n = 4000
	for name, next := range map[string]func() (uuid.UUID, error){"v4": uuid.NewRandom, "v7": uuid.NewV7} {
		kept := 0
		for range n {
			if trace.Of(uuid.Must(next()).String(), "", nil, 0.25).Sampled {
				kept++
			}
		}
		if kept < n/5 || kept > n*3/10 { // more than six standard deviations
			t.Errorf("%s: %d of %d", name, kept, n)
		}
	}
}

// TestPlaces checks that names give the same span on each node, and other names another one.
func TestPlaces(t *testing.T) {
	id := uuid.NewString()
	o, other := trace.Of(id, "", nil, 1), trace.Of(id, "", nil, 1)
	if o.At("run", "a") != other.At("run", "a") || o.At("run", "a") == o.At("run", "b") || o.At("a", "b") == o.At("ab") || o.Below("x") == o.At("y").Below("x") {
		t.Error("the names of spans are not their own")
	}
	header := http.Header{}
	trace.SetHeader(t.Context(), header)
	if len(header) > 0 || string(trace.Into(t.Context(), []byte(`{}`))) != `{}` {
		t.Errorf("without a place: %v", header)
	}
	ctx := trace.With(context.Background(), o.Place)
	trace.SetHeader(ctx, header)
	if header.Get("traceparent") != o.String() || event.Traceparent(trace.Into(ctx, []byte(`{"a":1}`))) != o.String() {
		t.Errorf("%v", header)
	}
	if given := []byte(`{"traceparent": "mine"}`); string(trace.Into(ctx, given)) != string(given) {
		t.Error("a client's own key is overwritten")
	}
}
