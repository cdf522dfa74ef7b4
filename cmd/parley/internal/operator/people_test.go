package operator_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/config/secret"
	"parley/ingest/attach"
	"parley/ingest/attach/s3test"
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// TestPeople lists, exports and forgets a person. The audit has the person's id and no name, and no role below operator forgets.
func TestPeople(t *testing.T) {
	s := searched(t)
	s.config.Operators = []config.Operator{{ID: "rea", Token: secret.New("reader-token"), Role: config.RoleReader}, {ID: "vic", Token: secret.New("viewer-token"), Role: config.RoleViewer}}
	server := httptest.NewServer(s.Remote(true))
	t.Cleanup(server.Close)
	c := operator.Alone(s.Service, func() error { return nil })
	ctx := t.Context()
	list, err := c.People(ctx, nil)
	var ids []string
	for _, p := range list.Items {
		ids = append(ids, p.SenderID)
	}
	if diff := cmp.Diff([]string{"slack:Mara", "slack:Tom", "slack:Olivia"}, ids); diff != "" || err != nil {
		t.Errorf("people: %v %s", err, diff)
	}
	held, err := c.Person(ctx, "mara")
	if held.SenderID != "slack:Mara" || held.Messages != 2 || err != nil {
		t.Errorf("a person: %+v %v", held, err)
	}
	for what, call := range map[string]func() error{
		"a viewer reads": func() error { _, err := operator.DialURL(server.URL, "viewer-token").Person(ctx, "mara"); return err },
		"a reader erases": func() error {
			_, err := operator.DialURL(server.URL, "reader-token").ForgetPerson(ctx, "mara", "")
			return err
		},
	} {
		if refused := refusal(t, call()); refused.Status != http.StatusForbidden {
			t.Errorf("%s: %+v", what, refused)
		}
	}
	_, err = c.Person(ctx, "nobody")
	if refused := refusal(t, err); refused.Code != "not-found" {
		t.Errorf("nobody: %+v", refused)
	}
	lines := exportedLines(t, ctx, operator.DialURL(server.URL, "reader-token"))
	if !strings.Contains(lines, "the tomatoes need water") || !strings.Contains(lines, "more WATER please") || strings.Contains(lines, "secret") {
		t.Errorf("export: %s", lines)
	}
	made, err := c.ForgetPerson(ctx, "Mara", "has left")
	if want := (operator.Forgotten{SenderID: "slack:Mara", Messages: 2}); made != want || err != nil {
		t.Errorf("forget: %+v %v", made, err)
	}
	if found, err := c.SearchMessages(ctx, map[string][]string{"q": {"water"}}); len(found.Items) != 2 || err != nil {
		t.Errorf("messages of others: %+v %v", found.Items, err)
	}
	audit, err := c.Audit(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(audit.Items)
	if len(audit.Items) != 2 || audit.Items[0].What != "people.forget" || audit.Items[0].Subject != "slack:Mara" || audit.Items[0].Note != "has left" || audit.Items[1].What != "people.export" {
		t.Errorf("audit: %s", raw)
	}
}

// refusal returns the refusal that an error is.
func refusal(t *testing.T, err error) *operator.Error {
	t.Helper()
	refused, ok := err.(*operator.Error) //nolint:errorlint // the client returns it as it is
	if !ok {
		t.Fatalf("no refusal: %v", err)
	}
	return refused
}

// exportedLines returns the lines of the export of Mara.
func exportedLines(t *testing.T, ctx context.Context, c *operator.Client) string {
	t.Helper()
	contents, err := c.ExportPerson(ctx, "slack:Mara")
	if err != nil {
		t.Fatal(err)
	}
	defer contents.Close()
	raw, err := io.ReadAll(contents)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	file, err := archive.Open("messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := io.ReadAll(file)
	if err != nil || strings.Count(string(lines), "\n") != 2 {
		t.Errorf("%v %s", err, lines)
	}
	return string(lines)
}

// TestFilesOfAForgottenPerson exports a file, and removes its copy from the folder and from the bucket.
func TestFilesOfAForgottenPerson(t *testing.T) {
	server := s3test.Start()
	t.Cleanup(server.Close)
	bucket := &attach.S3{Endpoint: server.URL, Bucket: s3test.Bucket, Region: s3test.Region, AccessKey: s3test.AccessKey, SecretKey: secret.New("canary")}
	for place, config := range map[string]attach.Config{
		"folder": {Dir: t.TempDir(), MaxBytes: 1 << 20}, "bucket": {Dir: t.TempDir(), MaxBytes: 1 << 20, S3: bucket},
	} {
		s := searched(t)
		var err error
		if s.Files, err = attach.New(config, attach.Books{}, nil); err != nil {
			t.Fatal(err)
		}
		kept, err := s.Files.Put(t.Context(), strings.NewReader("zebra bytes"), event.Attachment{Name: "zebra.txt"})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Journal.Engine().Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
			_, err := tx.Exec(`INSERT INTO attachments (message, part, external_id, name, mime_type, size, state, bucket, path)
				SELECT row, 0, 'F1', 'zebra.txt', 'text/plain', 11, 'stored', $1, $2 FROM messages WHERE content = 'the tomatoes need water'`, kept.Bucket, kept.Path)
			if err == nil {
				_, err = tx.Exec(`UPDATE messages SET files = 1 WHERE content = 'the tomatoes need water'`)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		c := operator.Alone(s.Service, func() error { return nil })
		if lines := exportedLines(t, t.Context(), c); !strings.Contains(lines, `"path":"files/1.txt"`) {
			t.Errorf("%s: export: %s", place, lines)
		}
		made, err := c.ForgetPerson(t.Context(), "slack:Mara", "")
		if made.Files != 1 || err != nil {
			t.Errorf("%s: %+v %v", place, made, err)
		}
		if content, err := s.Files.Open(t.Context(), kept.Bucket, kept.Path); err == nil {
			_ = content.Close()
			t.Errorf("%s: the copy is still there", place)
		}
		if keys := server.Keys(); len(keys) > 0 {
			t.Errorf("%s: the bucket has %v", place, keys)
		}
	}
}
