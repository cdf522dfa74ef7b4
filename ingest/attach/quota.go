package attach

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"syscall"
	"time"
)

var (
	// ErrQuota means that the copies have no room: Config.Quota is used up, or the disk is nearly
	// full.
	ErrQuota = errors.New("there is no room for attachments")
	// ErrSender means that a sender has sent more than Config.PerSender within the hour.
	ErrSender = errors.New("the sender has sent too many bytes of attachments within the hour")
)

const (
	// keptFree is the space of the disk that is left to the journal, in bytes.
	keptFree = 256 << 20
	// senderPer is the time of Config.PerSender.
	senderPer = time.Hour
	// recountEvery is the shortest time between two counts of all copies, recountAfter the longest while
	// copies are stored, because other daemons store some too, and refusedEvery is the shortest time between
	// two reports of a refusal.
	recountEvery, recountAfter, refusedEvery = time.Minute, 10 * time.Minute, time.Minute
	// unbounded is a bound that nothing reaches, to which one file can be added.
	unbounded = math.MaxInt64 / 2
)

// quota counts the bytes of copies.
type quota struct {
	most, perSender int64
	disk            string // a folder on the disk whose space is left to others
	used            func(ctx context.Context) (int64, error)
	spend           Spend

	mu      sync.Mutex
	bytes   int64     // of all copies
	counted time.Time // when they were counted; zero: never
	refused time.Time // of the last report
}

// take counts a new copy. It fails with ErrQuota or ErrSender if there is no room for it.
func (q *quota) take(ctx context.Context, sender string, size int64) error {
	if err := q.reserve(ctx, size); err != nil || sender == "" {
		return err
	}
	fits, err := q.spend(ctx, sender, size, q.perSender, senderPer)
	if err == nil && !fits {
		err = fmt.Errorf("%w: attachments.per_sender allows %d", ErrSender, q.perSender)
	}
	if err != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.bytes -= size
	}
	return err
}

// reserve counts a new copy among all copies.
func (q *quota) reserve(ctx context.Context, size int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if age := now.Sub(q.counted); age >= recountAfter || q.bytes+size > q.most && age >= recountEvery {
		bytes, err := q.used(ctx)
		if err != nil {
			return fmt.Errorf("count the copies: %w", err)
		}
		q.bytes, q.counted = bytes, now
	}
	switch {
	case q.bytes+size > q.most:
		return fmt.Errorf("%w: attachments.quota allows %d bytes", ErrQuota, q.most)
	case q.isDiskFull(size):
		return fmt.Errorf("%w: the last %d bytes of the disk are for the journal", ErrQuota, keptFree)
	}
	q.bytes += size
	return nil
}

// isDiskFull reports whether the disk has too little room for a copy. An unknown disk has room.
func (q *quota) isDiskFull(size int64) bool {
	var disk syscall.Statfs_t
	return syscall.Statfs(q.disk, &disk) == nil && int64(disk.Bavail)*int64(disk.Bsize) < size+keptFree
}

// reports reports whether a refusal is to be reported now.
func (q *quota) reports() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.refused) < refusedEvery {
		return false
	}
	q.refused = time.Now()
	return true
}

// IsRefused reports whether a file was refused because there is no room for it.
func IsRefused(err error) bool { return errors.Is(err, ErrQuota) || errors.Is(err, ErrSender) }
