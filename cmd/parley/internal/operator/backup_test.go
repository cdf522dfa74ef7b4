package operator_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/backup"
	"parley/ingest/journal/storage"
)

// save makes a backup with a client.
func save(t *testing.T, c *operator.Client) (operator.Backup, error) {
	t.Helper()
	made, err := backup.Create(t.Context(), filepath.Join(t.TempDir(), "a.tar.zst"), func(w io.Writer) error {
		contents, size, err := c.Backup(t.Context())
		if err != nil {
			return err
		}
		if size == 0 {
			t.Error("the size is not announced")
		}
		_, err = io.Copy(w, contents)
		return errors.Join(err, contents.Close())
	}, func(archive io.Reader, _ int64) io.Reader { return archive })
	return operator.BackupOf(made), err
}

// TestBackup is made by an operator only, by a command alone or over a listener. Its time is stored after it
// was read back.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := newService(t)
	server := httptest.NewServer(s.Remote(false))
	t.Cleanup(server.Close)
	for _, token := range []string{viewerToken, readerToken} {
		refused, ok := errors.AsType[*operator.Error](second(save(t, operator.DialURL(server.URL, token))))
		if !ok || refused.Status != http.StatusForbidden {
			t.Errorf("another role: %v", refused)
		}
	}
	for i, c := range []*operator.Client{operator.Alone(s.Service, func() error { return nil }), operator.DialURL(server.URL, operatorToken)} {
		made, err := save(t, c)
		if err != nil || made.Schema == 0 || len(made.Tables) < 20 {
			t.Fatalf("%+v, %v", made, err)
		}
		before := time.Now().Add(-time.Minute)
		if last, err := backup.Last(t.Context(), s.Journal); err != nil || last.Equal(made.At.Truncate(time.Second)) {
			t.Errorf("the last backup was at %v before it was read back (%v)", last, err)
		}
		made.At = made.At.Add(time.Duration(20*(i+1)) * time.Second) // later than the one before, and than the next snapshot
		if err := c.BackupVerified(t.Context(), made); err != nil {
			t.Error(err)
		}
		if last, err := backup.Last(t.Context(), s.Journal); err != nil || last.Before(before) {
			t.Errorf("the last backup was at %v (%v)", last, err)
		}
		page, err := c.Audit(t.Context(), nil)
		if err != nil || page.Items[0].What != "backup.verified" || page.Items[0].Subject != made.SHA256 || page.Items[1].What != "backup" {
			t.Errorf("%+v, %v", page, err)
		}
	}
	if err := operator.Alone(s.Service, nil).BackupVerified(t.Context(), operator.Backup{}); err == nil {
		t.Error("a backup without a sum is stored")
	}
}

// TestBackupWithoutRoom for an attachment in the folder of temporary files is refused in words for the caller.
func TestBackupWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newService(t)
	err := s.Journal.Engine().Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`INSERT INTO attachments (message, part, external_id, name, mime_type, size, state, bucket, path, sha256) VALUES (1, 0, 'F', 'a', 'text/plain', $1, 'stored', $2, $3, $4)`,
			int64(1<<60), s.Files.Bucket(), "aa/"+strings.Repeat("a", 64), strings.Repeat("a", 64))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = operator.Alone(s.Service, nil).Backup(t.Context())
	refused, ok := errors.AsType[*operator.Error](err)
	if !ok || refused.Status != http.StatusInsufficientStorage || !strings.Contains(refused.Error(), os.TempDir()) || !strings.Contains(refused.Error(), "TMPDIR") {
		t.Errorf("%v", err)
	}
}

func second[A any](_ A, err error) error { return err }

// TestTwoBackups may be read at the same time, and a caller may leave.
func TestTwoBackups(t *testing.T) {
	t.Parallel()
	c := operator.Alone(newService(t).Service, nil)
	for range 2 {
		contents, _, err := c.Backup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer contents.Close()
		if _, err := io.ReadFull(contents, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
}
