package attach_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/config/secret"
	"parley/ingest/attach"
	"parley/ingest/attach/s3test"
	"parley/ingest/event"
)

const canary = "canary-s3-secret-41c7"

func startS3(t *testing.T) *s3test.Server {
	t.Helper()
	server := s3test.Start()
	t.Cleanup(server.Close)
	return server
}

func s3Config(t *testing.T, server *s3test.Server) attach.Config {
	t.Helper()
	return attach.Config{Dir: filepath.Join(t.TempDir(), "spool"), MaxBytes: roomy, S3: &attach.S3{
		Endpoint: server.URL, Bucket: s3test.Bucket, Region: s3test.Region, Prefix: "chat/files",
		AccessKey: s3test.AccessKey, SecretKey: secret.New(canary),
	}}
}

// inBucket returns a store in the server's bucket, and the directory of its drafts.
func inBucket(t *testing.T, server *s3test.Server) (*attach.Store, string) {
	t.Helper()
	config := s3Config(t, server)
	return open(t, config, nil), config.Dir
}

func TestABucketGetsOneRequestPerCall(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	store, _ := inBucket(t, server)
	kept, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
	if err != nil {
		t.Fatal(err)
	}
	read(t, store, kept)
	if err := store.Remove(t.Context(), kept.Bucket, kept.Path); err != nil {
		t.Fatal(err)
	}
	key := "chat/files/" + kept.Path
	if diff := cmp.Diff([]string{"PUT " + key, "GET " + key, "DELETE " + key}, server.Requests()); diff != "" {
		t.Error(diff)
	}
}

func TestTheRegionComesFromTheServer(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	config := s3Config(t, server)
	config.S3.Region, config.S3.Prefix = "", ""
	store := open(t, config, nil)
	for range 2 {
		kept, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{kept.Path}, server.Keys()); diff != "" {
			t.Error(diff)
		}
	}
	if asked := server.Requests(); len(asked) != 3 || asked[0] != "GET " {
		t.Errorf("%q", asked)
	}
}

func TestAShortFailureIsRetried(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]s3test.Fault{
		"an error":            {Status: http.StatusServiceUnavailable, Code: "SlowDown"},
		"an early error":      {Status: http.StatusInternalServerError, Code: "InternalError", Unread: true},
		"a closed connection": {Cut: true},
		"too many requests":   {Status: http.StatusTooManyRequests, Code: "TooManyRequests"},
		"a gateway's timeout": {Status: http.StatusGatewayTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startS3(t)
			store, dir := inBucket(t, server)
			content := bytes.Repeat(png, 500) // more than sockets buffer
			server.Script(http.MethodPut, fault, fault)
			kept, err := store.Put(t.Context(), bytes.NewReader(content), event.Attachment{})
			if err != nil {
				t.Fatal(err)
			}
			if !fault.Cut { // a cut object is an error of the reader
				server.Script(http.MethodGet, fault, fault)
			}
			if !bytes.Equal(read(t, store, kept), content) {
				t.Error("the copy differs from the file")
			}
			server.Script(http.MethodDelete, fault, fault)
			if err := store.Remove(t.Context(), kept.Bucket, kept.Path); err != nil || len(server.Keys()) != 0 {
				t.Errorf("%v, left %q", err, server.Keys())
			}
			if found := filesOf(t, dir); len(found) != 0 {
				t.Errorf("left %v on the disk", found)
			}
		})
	}
}

// TestABucketThatFails makes every call fail for good, and searches all errors for the
// secret.
func TestABucketThatFails(t *testing.T) {
	t.Parallel()
	down := s3test.Fault{Status: http.StatusInternalServerError, Code: "InternalError", Message: "We encountered an internal error."}
	denied := s3test.Fault{Status: http.StatusForbidden, Code: "AccessDenied", Message: "Access Denied."}
	for name, c := range map[string]struct {
		fault s3test.Fault
		tries int
		words string
	}{
		"down":   {down, 3, "internal error"},
		"cut":    {s3test.Fault{Cut: true}, 3, ""},
		"denied": {denied, 1, "Access Denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startS3(t)
			store, dir := inBucket(t, server)
			for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodDelete} {
				server.Script(method, slices.Repeat([]s3test.Fault{c.fault}, c.tries)...)
			}
			_, put := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{Name: "a.png"})
			remove := store.Remove(t.Context(), "s3:parley-test/chat/files", absent)
			for call, err := range map[string]error{"put": put, "remove": remove} {
				if err == nil || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), "bucket parley-test at 127.0.0.1:") {
					t.Errorf("%s: %v", call, err)
				}
			}
			if asked := server.Requests(); len(asked) != 2*c.tries {
				t.Errorf("%d requests: %q", len(asked), asked)
			}
			if len(server.Keys())+len(filesOf(t, dir)) != 0 {
				t.Errorf("left %q, %v", server.Keys(), filesOf(t, dir))
			}
			errorText := fmt.Sprintf("%v %+v %v %+v %v %+v %#v", put, put, remove, remove, store, store, s3Config(t, server))
			if strings.Contains(errorText, canary) {
				t.Errorf("the secret appears in %s", errorText)
			}
		})
	}
}

func TestAnErrorHidesTheSecret(t *testing.T) {
	t.Parallel()
	config := s3Config(t, startS3(t))
	config.S3.AccessKey = "AKIAOTHER"
	_, err := open(t, config, nil).Put(t.Context(), bytes.NewReader(png), event.Attachment{})
	if err == nil || !strings.Contains(err.Error(), "Authorization was AWS4-HMAC-SHA256") || strings.Contains(err.Error(), canary) {
		t.Errorf("a server that repeats the request: %v", err)
	}
}

func TestADamagedObjectIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   s3test.Fault
		content []byte // replaces the stored object
		want    error
	}{
		"cut":           {fault: s3test.Fault{Cut: true}, want: io.ErrUnexpectedEOF},
		"wrong length":  {fault: s3test.Fault{Short: true}, want: attach.ErrDamaged},
		"other content": {content: []byte("<html>sign in</html>"), want: attach.ErrDamaged},
		"no content":    {content: []byte{}, want: attach.ErrDamaged},
	} {
		server := startS3(t)
		store, _ := inBucket(t, server)
		kept, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		if c.content != nil {
			server.Set("chat/files/"+kept.Path, c.content)
		}
		server.Script(http.MethodGet, c.fault)
		content, err := store.Open(t.Context(), kept.Bucket, kept.Path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := io.ReadAll(content); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		content.Close()
	}
}

func TestAMissingBucketIsNoMissingCopy(t *testing.T) {
	t.Parallel()
	config := s3Config(t, startS3(t))
	config.S3.Bucket = "another"
	store := open(t, config, nil)
	if _, err := store.Open(t.Context(), "s3:another/chat/files", absent); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing bucket: %v", err)
	}
}

// TestACallEndsWithItsContext covers a server that never answers.
func TestACallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	server := startS3(t)
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	})
	server.Config.Handler = silent
	store, dir := inBucket(t, server)
	for name, call := range map[string]func(context.Context) error{
		"put": func(ctx context.Context) error {
			_, err := store.Put(ctx, bytes.NewReader(png), event.Attachment{})
			return err
		},
		"open": func(ctx context.Context) error {
			_, err := store.Open(ctx, "s3:parley-test/chat/files", absent)
			return err
		},
		"remove": func(ctx context.Context) error { return store.Remove(ctx, "s3:parley-test/chat/files", absent) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		<-asked
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if found := filesOf(t, dir); len(found) != 0 {
		t.Errorf("left %v", found)
	}
}

func TestSweepRemovesDraftsOfABucket(t *testing.T) {
	t.Parallel()
	store, dir := inBucket(t, startS3(t))
	if _, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "incoming/OLD"), png, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Sweep(time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if found := filesOf(t, dir); len(found) != 0 {
		t.Errorf("left %v", found)
	}
}
