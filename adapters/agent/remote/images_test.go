package remote_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

const (
	png = "\x89PNG\r\n\x1a\n"
	mib = 1 << 20
)

// album opens images of any size. Each has the path as its content after the first bytes,
// repeated to its size.
type album struct {
	sizes       map[string]int64
	open, opens atomic.Int64
	refuse      atomic.Bool // all further opens fail
}

func (a *album) Open(_ context.Context, _, path string) (io.ReadCloser, error) {
	if a.refuse.Load() {
		return nil, errors.New("the copy is gone")
	}
	a.open.Add(1)
	a.opens.Add(1)
	return &picture{a, io.LimitReader(io.MultiReader(strings.NewReader(png), &repeated{text: strings.Repeat(path, 1000)}), a.sizes[path])}, nil
}

type picture struct {
	album *album
	io.Reader
}

func (p *picture) Close() error {
	p.album.open.Add(-1)
	return nil
}

// repeated is a text without end.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func (a *album) content(path string) string {
	image, _ := a.Open(context.Background(), "", path)
	defer image.Close()
	content, _ := io.ReadAll(image)
	return string(content)
}

// send sends the images between texts, and returns the response's status or the error.
func (a *album) send(t *testing.T, limit int64, handler http.HandlerFunc, paths ...string) (int, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	images := remote.NewImages(a, limit, remote.DefaultImagesBytes)
	texts := []string{"a \" text"}
	for _, path := range paths {
		_, mark, ok := images.Add(t.Context(), assembly.File{Path: path})
		if !ok {
			t.Fatalf("%s is left out", path)
		}
		texts = append(texts, mark, "and "+path)
	}
	raw, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	images.Send(request, raw)
	response, err := server.Client().Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

func TestImagesAreSentWhole(t *testing.T) {
	a := &album{sizes: map[string]int64{"one": 8, "two": 3071, "three": 3072, "four": 3073, "five": 100_000}}
	var got []string
	var length int64
	status, err := a.send(t, mib, func(_ http.ResponseWriter, r *http.Request) {
		length = r.ContentLength
		raw, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(raw, &got); err != nil || int64(len(raw)) != length {
			t.Errorf("%d bytes of %d: %v", len(raw), length, err)
		}
	}, "one", "two", "three", "four", "five")
	if err != nil || status != http.StatusOK || len(got) != 11 || got[0] != "a \" text" {
		t.Fatalf("%d, %v: %d texts", status, err, len(got))
	}
	for i, path := range []string{"one", "two", "three", "four", "five"} {
		image, err := base64.StdEncoding.DecodeString(got[1+2*i])
		if err != nil || string(image) != a.content(path) || got[2+2*i] != "and "+path {
			t.Errorf("%s: %d bytes, %v, %q", path, len(image), err, got[2+2*i])
		}
	}
	if n := a.open.Load(); n != 0 {
		t.Errorf("%d images are still open", n)
	}
}

// TestNoImageIsHeld sends an image of 20 MiB and counts the bytes that were allocated
// meanwhile, by the server too.
// hung opens no image before its time ends.
type hung struct{}

// Open implements agent.Files.
func (hung) Open(ctx context.Context, _, _ string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestImagesThatHangLeaveTimeForTheRun: the images are only named.
func TestImagesThatHangLeaveTimeForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		parts := slices.Repeat([]assembly.Part{{File: &assembly.File{Name: "a.png", Path: "p", Size: 9}}}, 20)
		got := remote.NewImages(hung{}, mib, mib).Contents(run, []assembly.Message{{Role: assembly.RoleUser, Parts: parts}}, nil)
		if text, ok := got[0].(string); !ok || strings.Count(text, "a.png") != 20 || run.Err() != nil {
			t.Errorf("%v, %q", run.Err(), got)
		}
	})
}

func TestNoImageIsHeld(t *testing.T) {
	a := &album{sizes: map[string]int64{"large": 20 * mib}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	status, err := a.send(t, 64*mib, func(_ http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); n < 26*mib {
			t.Errorf("%d bytes arrived: %v", n, err)
		}
	}, "large")
	runtime.ReadMemStats(&after)
	if held := after.TotalAlloc - before.TotalAlloc; err != nil || status != http.StatusOK || held > mib {
		t.Errorf("%d, %v: %d KiB allocated", status, err, held>>10)
	}
}

// TestImagesAreBounded leaves out an image above its limit, and one above that of all.
func TestImagesAreBounded(t *testing.T) {
	a := &album{sizes: map[string]int64{"small": mib, "fits": 8 * mib, "large": 8*mib + 1}}
	images := remote.NewImages(a, 8*mib, remote.DefaultImagesBytes)
	for _, c := range []struct {
		file assembly.File
		want bool
	}{
		{assembly.File{Path: "fits"}, true},
		{assembly.File{Path: "large"}, false},
		{assembly.File{Path: "fits"}, true},
		{assembly.File{Path: "fits"}, false},
		{assembly.File{Path: "small"}, true},
		{assembly.File{}, false},
	} {
		if _, _, ok := images.Add(t.Context(), c.file); ok != c.want {
			t.Errorf("%s: %v", c.file.Path, ok)
		}
	}
	opens := a.opens.Load()
	if _, _, ok := images.Add(t.Context(), assembly.File{Path: "large", Size: 8*mib + 1}); ok || a.opens.Load() != opens {
		t.Error("an image that is known to be too large was opened")
	}
	if n := a.open.Load(); n != 0 {
		t.Errorf("%d images are still open", n)
	}
}

// TestImageIsClosedAfterAbortedRequest: the server answers before it has read the image.
func TestImageIsClosedAfterAbortedRequest(t *testing.T) {
	a := &album{sizes: map[string]int64{"large": 20 * mib}}
	_, _ = a.send(t, 64*mib, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUnauthorized)
	}, "large")
	for a.open.Load() != 0 { // the transport closes the body after its response
		runtime.Gosched()
	}
}

// TestLostImageFailsTheRequest: the copy disappears between Add and the request.
func TestLostImageFailsTheRequest(t *testing.T) {
	a := &album{sizes: map[string]int64{"one": 100}}
	images := remote.NewImages(a, mib, remote.DefaultImagesBytes)
	_, mark, _ := images.Add(t.Context(), assembly.File{Path: "one"})
	a.refuse.Store(true)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	images.Send(request, []byte(`["`+mark+`"]`))
	if sent, err := io.ReadAll(request.Body); err == nil || string(sent) != `["` {
		t.Errorf("%q, %v", sent, err)
	}
}
