package operator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"parley/config"
	"parley/ingest/backup"
	"parley/ingest/event"
	"parley/ingest/journal/sqlite"
)

var backupRoutes = []Route{
	{Pattern: "POST backup", Role: config.RoleOperator, stream: (*Service).streamBackup},
	{Pattern: "POST backup/verified", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var made Backup
		if err := c.Bind(&made); err != nil {
			return nil, err
		}
		return s.BackupVerified(c.Context(), c.Write(""), made)
	}},
}

// Backup is a backup that was made and read back.
type Backup struct {
	At      time.Time        `json:"at"` // of its snapshot
	Schema  int64            `json:"schema"`
	Tables  map[string]int64 `json:"tables"` // numbers of rows
	Files   int              `json:"files"`
	Missing []string         `json:"missing"` // paths of files that could not be read
	Bytes   int64            `json:"bytes"`   // of the archive
	SHA256  string           `json:"sha256"`  // of the archive
}

// BackupOf returns the description of an archive.
func BackupOf(r backup.Result) Backup {
	return Backup{At: r.At, Schema: r.Schema, Tables: r.Tables, Files: r.Files, Missing: r.Missing, Bytes: r.Bytes, SHA256: r.SHA256}
}

// sizeHeader is the header with about the number of bytes of a backup's contents.
const sizeHeader = "X-Parley-Bytes"

// Backup writes the contents of a backup of the whole store, a tar file, to w. begin is called before the first
// byte, with about the number of bytes. Other work goes on meanwhile.
func (s *Service) Backup(ctx context.Context, by Write, begin func(bytes int64), w io.Writer) (backup.About, error) {
	by.Key = "" // the contents are no stored result
	return audited(ctx, s, by, "backup", "", func(ctx context.Context) (backup.About, error) {
		made, err := backup.Begin(ctx, backup.Source{Engine: s.Journal.Engine(), Files: s.Files, Program: s.Version, Now: s.Now})
		if err != nil {
			return backup.About{}, err
		}
		defer made.Close()
		begin(made.Bytes())
		return made.About, made.Write(ctx, w)
	})
}

// streamBackup answers with the contents of a backup. If they cannot be written to their end, the connection
// breaks, so that the caller knows.
func (s *Service) streamBackup(c *Call, w http.ResponseWriter) error {
	begun := false
	_, err := s.Backup(c.Context(), c.Write(""), func(bytes int64) {
		begun = true
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the caller may be slow: the snapshot holds no lock
		w.Header().Set("Content-Type", "application/x-tar")
		w.Header().Set(sizeHeader, strconv.FormatInt(bytes, 10))
	}, w)
	if err != nil && begun {
		if c.Context().Err() == nil {
			s.Guard.Fault(err)
		}
		panic(http.ErrAbortHandler)
	}
	return refusedBackup(err)
}

// refusedBackup turns the error of a second backup, and of one without a place for temporary files, into a refusal.
func refusedBackup(err error) error {
	switch {
	case errors.Is(err, sqlite.ErrSnapshot):
		return Fail(http.StatusConflict, "busy", sqlite.ErrSnapshot.Error())
	case errors.Is(err, backup.ErrSpool):
		return Fail(http.StatusInsufficientStorage, "temporary-files", err.Error())
	}
	return err
}

// BackupVerified stores that a backup was made and read back: doctor, status and a metric tell its age.
func (s *Service) BackupVerified(ctx context.Context, by Write, made Backup) (Backup, error) {
	var faults event.FieldErrors
	faults.Check(!made.At.IsZero() && !made.At.After(s.Now().Add(time.Minute)), "at", "must be the time of the snapshot")
	faults.Check(len(made.SHA256) == 64, "sha256", "must be the SHA-256 of the archive")
	if len(faults) > 0 {
		return made, faults
	}
	return audited(ctx, s, by, "backup.verified", made.SHA256, func(ctx context.Context) (Backup, error) {
		return made, backup.Record(ctx, s.Journal, made.At)
	})
}

// Backup returns the contents of a backup, which the caller closes, and about the number of their bytes.
func (c *Client) Backup(ctx context.Context) (contents io.ReadCloser, bytes int64, err error) {
	response, err := c.do(ctx, http.MethodPost, "backup", nil, nil)
	if err != nil {
		return nil, 0, err
	}
	bytes, _ = strconv.ParseInt(response.Header.Get(sizeHeader), 10, 64) // 0 if a proxy removed it
	return response.Body, bytes, nil
}

// BackupVerified tells that a backup was made and read back.
func (c *Client) BackupVerified(ctx context.Context, made Backup) error {
	_, err := Post[Backup](ctx, c, "backup/verified", made)
	return err
}
