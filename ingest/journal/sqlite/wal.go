package sqlite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// logDamage is a fault in the middle of a database's write-ahead log. SQLite drops the log from there on at the next open, without
// an error.
type logDamage struct {
	// Frame is the first frame that SQLite drops, from 1; 0 for the whole log, because its header is not valid.
	Frame int
	// Commits is the number of transactions that end there or behind it. Further ones are lost if the fault hides their ends.
	Commits int
}

// String says what SQLite drops.
func (d logDamage) String() string {
	place := "header"
	if d.Frame > 0 {
		place = "frame " + strconv.Itoa(d.Frame)
	}
	return fmt.Sprintf("the write-ahead log is damaged in its %s, and SQLite drops the rest, with at least %d stored transactions", place, d.Commits)
}

// The sizes of the parts of a log, and its first number, whose lowest bit says that the checksums are of big-endian words.
// https://www.sqlite.org/fileformat2.html#walformat
const (
	logHeader, frameHeader = 32, 24
	logMagic               = 0x377f0682
)

// damagedLog looks for a fault in the log of the database at path, which another process may be writing. It returns nil if there
// is none.
//
// A killed process or a power cut may leave a last transaction of which any frames are missing, and behind it frames from
// before the log's last restart, which have other salts. No transaction begins before the one before it is on the disk, because
// connections that write have synchronous=FULL, and so has the header. So two ends of transactions with the log's salts, at or behind
// the first frame that is not valid, show a damage. One alone shows none: a damage in the last transaction is not told.
func damagedLog(path string) (*logDamage, error) {
	header, found, err := scanLog(path)
	if err != nil || found == nil {
		return nil, err
	}
	now, again, err := scanLog(path) // a writer has changed the place meanwhile, but no damage
	if err != nil || again == nil || again.Frame != found.Frame || !bytes.Equal(now, header) {
		return nil, err
	}
	return again, nil
}

// scanLog reads a log once. It returns its header too.
func scanLog(path string) (header []byte, found *logDamage, err error) {
	file, err := os.Open(path + "-wal")
	if err != nil {
		return nil, nil, atEnd(err)
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	header = make([]byte, logHeader)
	if _, err := io.ReadFull(in, header); err != nil {
		return nil, nil, atEnd(err)
	}
	magic, page, salts := binary.BigEndian.Uint32(header), int(binary.BigEndian.Uint32(header[8:])), bytes.Clone(header[16:24])
	order := binary.ByteOrder(binary.LittleEndian)
	if magic&1 != 0 {
		order = binary.BigEndian
	}
	sum := checksum{}.with(order, header[:24])
	begins := magic&^1 == logMagic && sum.is(header[24:])
	if !begins { // and each frame has the salts of the one before
		page, _ = strconv.Atoi(pageSize)
	}
	valid := begins
	damage, frame := logDamage{}, make([]byte, frameHeader+page)
	for n := 1; ; n++ {
		if _, err := io.ReadFull(in, frame); err != nil {
			if damage.Commits > 1 {
				found = &damage
			}
			return header, found, atEnd(err)
		}
		own := bytes.Equal(frame[8:16], salts)
		if valid {
			sum = sum.with(order, frame[:8]).with(order, frame[frameHeader:])
			if valid = own && sum.is(frame[16:]); !valid {
				damage.Frame = n
			}
		}
		if !valid && own && binary.BigEndian.Uint32(frame[4:]) != 0 { // the pages of the database after a transaction
			damage.Commits++
		}
		if !begins {
			copy(salts, frame[8:16])
		}
	}
}

// atEnd returns nil for an error that is only the end of a log, or says that there is none.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("read the write-ahead log: %w", err)
}

// checksum is the checksum of a log up to some place.
type checksum [2]uint32

// with returns the checksum after more bytes, a multiple of eight.
func (c checksum) with(order binary.ByteOrder, more []byte) checksum {
	for i := 0; i < len(more); i += 8 {
		c[0] += order.Uint32(more[i:]) + c[1]
		c[1] += order.Uint32(more[i+4:]) + c[0]
	}
	return c
}

// is reports whether the bytes of a log are the checksum.
func (c checksum) is(stored []byte) bool {
	return c[0] == binary.BigEndian.Uint32(stored) && c[1] == binary.BigEndian.Uint32(stored[4:])
}

// lostEnd is the end of the name of the note beside the database that says what a damaged log has cost. It stays until an operator removes it,
// or restores a backup.
const lostEnd = ".lost"

// noteDamage notes what the next connection drops of a damaged log. It logs the note of that, or of an earlier time.
func noteDamage(path string, log *slog.Logger) error {
	found, err := damagedLog(path)
	if err != nil {
		return err
	}
	lost, noted := lostAt(path), error(nil)
	if found != nil {
		lost = time.Now().UTC().Format(time.RFC3339) + ": " + found.String() +
			". Messages of that time may be read and answered again. Look at the disk, restore a backup if messages are missing, and then remove " + path + lostEnd
		var file *os.File
		if file, noted = os.OpenFile(path+lostEnd, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600); noted == nil {
			_, noted = file.WriteString(lost + "\n")
			noted = errors.Join(noted, file.Sync(), file.Close())
		}
	}
	if lost != "" {
		log.Error("the store has lost a part", "store", path, "lost", lost, "err", noted)
	}
	return nil
}

// lostAt returns the note of a lost part of a log; empty for none.
func lostAt(path string) string {
	words, _ := os.ReadFile(path + lostEnd)
	return strings.TrimSpace(string(words))
}
