package guard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters/guard"
)

const limit = 1 << 20

// readsUnverified returns a handler that reads bodies of at most 1 MiB. A body that contains
// "wrong" is refused. Each beginning of a read is reported to reads, if it is not nil.
func readsUnverified(reads chan struct{}) func(g *guard.Guard, w http.ResponseWriter, r *http.Request) {
	return func(g *guard.Guard, w http.ResponseWriter, r *http.Request) {
		if reads != nil {
			r.Body = &begun{ReadCloser: r.Body, reads: reads}
		}
		raw, refusal := g.Unverified(w, r, guard.Limit{Bytes: limit, Time: within}, func(body []byte) string {
			if strings.Contains(string(body), "wrong") {
				return "bad-signature"
			}
			return ""
		})
		if refusal != nil {
			g.Refuse(w, refusal)
			return
		}
		_, _ = w.Write(raw)
	}
}

// TestBodies reads bodies of every size, with and without a declared length.
func TestBodies(t *testing.T) {
	handlers := map[string]func(*guard.Guard, http.ResponseWriter, *http.Request){
		"unverified": readsUnverified(nil),
		"authenticated": func(g *guard.Guard, w http.ResponseWriter, r *http.Request) {
			raw, refusal := g.Body(w, r, guard.Limit{Bytes: limit, Time: within})
			if refusal != nil {
				g.Refuse(w, refusal)
				return
			}
			_, _ = w.Write(raw)
		},
	}
	for name, handler := range handlers {
		d := open(t, handler)
		for _, size := range []int{0, 1, 4095, 4096, 4097, 8192, limit - 1, limit, limit + 1, 3 * limit} {
			want := http.StatusOK
			if size > limit {
				want = http.StatusRequestEntityTooLarge
			}
			text := strings.Repeat("x", size)
			for form, body := range map[string]io.Reader{"declared": strings.NewReader(text), "undeclared": io.MultiReader(strings.NewReader(text))} {
				response, err := d.Client().Post(d.URL, "text/plain", body)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if response.StatusCode != want || want == http.StatusOK && string(got) != text || err != nil {
					t.Errorf("%s, %s length %d: %s, %d bytes, %v", name, form, size, response.Status, len(got), err)
				}
			}
		}
		d.check(name+": free bytes", d.Free(), guard.MaxUnverified)
	}
}

// TestOldestBodyIsClosed fills the memory with bodies that never end. Each new one closes the
// oldest.
func TestOldestBodyIsClosed(t *testing.T) {
	reads := make(chan struct{})
	d := open(t, readsUnverified(reads))
	var slow []*caller
	for range guard.MaxUnverified / limit {
		slow = append(slow, d.dial().post(limit, "slow"))
		<-reads
	}
	d.check("free bytes", d.Free(), 0)
	for _, oldest := range slow[:3] {
		d.dial().post(limit, "slow, too")
		<-reads
		d.check("the oldest body", oldest.answer(), http.StatusServiceUnavailable)
		if reason := <-d.reasons; reason != "crowded-out" || !oldest.ended() {
			t.Errorf("%s, or its connection is still open", reason)
		}
	}
	last := d.dial().post(5, "right")
	<-reads
	d.check("a small body", last.answer(), http.StatusOK)
	d.check("the fourth body", slow[3].answer(), http.StatusServiceUnavailable)
	d.check("free bytes", d.Free(), limit) // the small body's are free again
	slow[4].send("%s", strings.Repeat("x", limit-len("slow")))
	d.check("a body that ends at last", slow[4].answer(), http.StatusOK)
}

// TestUndeclaredBodiesShareTheMemory fills the memory with bodies without a declared length,
// whose buffers grow to 1 MiB.
func TestUndeclaredBodiesShareTheMemory(t *testing.T) {
	reads := make(chan struct{})
	d := open(t, readsUnverified(reads))
	const more, size = 4, 900 << 10
	begin := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", size, strings.Repeat("x", size))
	for range guard.MaxUnverified/limit + more {
		d.dial().send("%s", begin)
		<-reads
	}
	for range more {
		if reason := <-d.reasons; reason != "crowded-out" {
			t.Error(reason)
		}
	}
}

// recorder is a response on a connection with a deadline.
type recorder struct{ httptest.ResponseRecorder }

func (*recorder) SetReadDeadline(time.Time) error { return nil }

// TestBodyWaitsForVerification fills the memory with complete bodies. The next one waits
// until one of them has been verified.
func TestBodyWaitsForVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, release, begun := guard.New(func(string) {}), make(chan struct{}), 0
		var mu sync.Mutex
		verify := func([]byte) string {
			mu.Lock()
			begun++
			mu.Unlock()
			<-release
			return ""
		}
		const all = guard.MaxUnverified / limit
		send := func() {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", limit)))
			if _, refusal := g.Unverified(new(recorder), r, guard.Limit{Bytes: limit, Time: within}, verify); refusal != nil {
				t.Error(refusal)
			}
		}
		for range all {
			go send()
		}
		synctest.Wait()
		go send()
		if synctest.Wait(); begun != all || g.Free() != 0 {
			t.Errorf("%d of %d bodies are being verified, %d bytes are free", begun, all+1, g.Free())
		}
		release <- struct{}{}
		if synctest.Wait(); begun != all+1 {
			t.Errorf("the last body still waits")
		}
		close(release)
		if synctest.Wait(); g.Free() != guard.MaxUnverified {
			t.Errorf("%d bytes are free", g.Free())
		}
	})
}

// TestSlowBody declares a body and does not send all of it.
func TestSlowBody(t *testing.T) {
	d := open(t, func(g *guard.Guard, w http.ResponseWriter, r *http.Request) {
		_, refusal := g.Body(w, r, guard.Limit{Bytes: limit, Time: time.Millisecond})
		g.Refuse(w, refusal)
	})
	slow := d.dial().post(10, "half")
	if d.check("a slow body", slow.answer(), http.StatusRequestTimeout); !slow.ended() || <-d.reasons != "slow-body" {
		t.Error("its connection is open, or the reason is wrong")
	}
}

// TestBrokenBody sends a chunk without a length.
func TestBrokenBody(t *testing.T) {
	d := open(t, readsUnverified(nil))
	broken := d.dial().send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n")
	if d.check("a broken body", broken.answer(), http.StatusBadRequest); !broken.ended() || <-d.reasons != "broken-body" {
		t.Error("its connection is open, or the reason is wrong")
	}
}
