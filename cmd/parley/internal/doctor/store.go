package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"parley/config"
	"parley/ingest/backup"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
)

const (
	// integrityTime bounds the reading of a whole store.
	integrityTime = time.Minute
	// LowSpace and noSpace are the free spaces of a disk, in bytes, below which it is a warning or a fault.
	LowSpace, noSpace = 1 << 30, 100 << 20
	// fewDays of growth are a warning.
	fewDays = 14
	// manyDays of growth and more say nothing about the disk.
	manyDays = 3650
)

// postgres looks at a PostgreSQL store, which has tools of its own for its integrity and its disk.
func (v *visit) postgres(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	found, err := postgres.Inspect(ctx, postgres.Options{URL: v.config.Store.URL.Reveal()})
	if err != nil {
		return v.at("store", Fault, "", "store", "can't be used: "+err.Error())
	}
	check := v.at("store", OK, "", "store", fmt.Sprintf("PostgreSQL %s, %s, %d of %d connections used", found.Version, humanize.Bytes(uint64(found.Bytes)), found.Connections, found.Limit))
	switch {
	case found.Schema == 0:
		check.Words += "; its tables are made at the first start"
	case found.Connections*10 >= found.Limit*9:
		check.State, check.Words = Warning, check.Words+": few are left, so raise max_connections or lower store.connections"
	}
	return check
}

// store looks at the store, and at the disk of an embedded one.
func (v *visit) store(ctx context.Context) []Check {
	if v.config.Store.Engine != config.SQLite {
		return []Check{v.postgres(ctx)}
	}
	path := v.config.Store.Path
	bytes, err := sizeOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []Check{{Name: "store", State: OK, Words: "is made at the first start"}, v.disk(0)}
	}
	ctx, cancel := context.WithTimeout(ctx, integrityTime)
	defer cancel()
	var found sqlite.Inspection
	if err == nil {
		found, err = sqlite.Inspect(ctx, path, v.Now().Add(-24*time.Hour))
	}
	check := v.at("store", OK, "", "store", fmt.Sprintf("integrity ok, %s, %s", humanize.Bytes(uint64(bytes)), number(found.Messages, "message")))
	switch {
	case ctx.Err() != nil:
		check.State, check.Words = Warning, fmt.Sprintf("its %s could not be read within %v", humanize.Bytes(uint64(bytes)), integrityTime)
	case err != nil:
		check.State, check.Words = Fault, "can't be read: "+err.Error()
	case found.Damage != "":
		check.State, check.Words = Fault, "is damaged: "+found.Damage+": restore a backup"
	case found.Log != "":
		check.State, check.Words = Fault, "is damaged: "+found.Log+" at the next start: look at the disk, and restore a backup"
	case found.Lost != "":
		check.State, check.Words = Warning, "has lost a part: "+found.Lost
	}
	perDay := int64(0)
	if found.Messages > 0 {
		perDay = int64(float64(bytes) / float64(found.Messages) * float64(found.Since))
	}
	return []Check{check, v.disk(perDay)}
}

// sizeOf returns the size of a database with its log.
func sizeOf(path string) (bytes int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	bytes = info.Size()
	if log, err := os.Stat(path + "-wal"); err == nil {
		bytes += log.Size()
	}
	return bytes, nil
}

// oldBackup is the age from which a backup is a warning.
const oldBackup = 8 * 24 * time.Hour

// backup says how old the last backup of an embedded store is. Those of PostgreSQL are made elsewhere.
func (v *visit) backup(ctx context.Context) []Check {
	path := v.config.Store.Path
	if _, err := os.Stat(path); err != nil || v.config.Store.Engine != config.SQLite {
		return nil
	}
	check := Check{Name: "backup", State: Warning, Words: "none was made: run parley backup FILE"}
	at, err := backup.LastIn(ctx, path)
	switch age := v.Now().Sub(at); {
	case err != nil:
		check.Words = "its age can't be read: " + err.Error()
	case at.IsZero():
	case age > oldBackup:
		check.Words = fmt.Sprintf("none in %d days: run parley backup FILE", int(age.Hours())/24)
	default:
		check.State, check.Words = OK, "the last one is of "+at.Format(time.RFC3339)
	}
	return []Check{check}
}

// FreeSpace returns the free space of the disk of a folder, in bytes.
func FreeSpace(dir string) (uint64, error) {
	var disk syscall.Statfs_t
	err := syscall.Statfs(dir, &disk)
	return uint64(disk.Bavail) * uint64(disk.Bsize), err
}

// disk says how much space is free beside the store, and for how long at a growth per day.
func (v *visit) disk(perDay int64) Check {
	dir := filepath.Dir(v.config.Store.Path)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
	}
	free, err := FreeSpace(dir)
	if err != nil {
		return Check{Name: "disk", State: Warning, Words: "its free space can't be read: " + err.Error()}
	}
	check := Check{Name: "disk", State: OK, Words: humanize.Bytes(free) + " free"}
	days := uint64(fewDays)
	if perDay > 0 {
		days = free / uint64(perDay)
	}
	if perDay > 0 && days < manyDays {
		check.Words += fmt.Sprintf(", %s days at the rate of the last day", humanize.Comma(int64(days)))
	}
	switch {
	case free < noSpace:
		check.State = Fault
	case free < LowSpace || days < fewDays:
		check.State = Warning
	}
	return check
}
