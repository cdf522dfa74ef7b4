package storage

import (
	"strings"
	"time"
)

// Millis returns the stored form of a time: milliseconds since 1970, 0 for none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Instant returns the time of a stored number of milliseconds since 1970, the zero time
// for 0.
func Instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Bytes returns the value of a column of bytes. An empty one is not null.
func Bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Number returns the stored form of a bool.
func Number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Nullable returns the value of a nullable column.
func Nullable(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// Optional returns the value of a nullable column, which is null for an empty text.
func Optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Between returns the ids of workspaces between commas, for the condition LIKE '%,' || workspace || ',%'. They contain no comma, and
// no character that LIKE interprets.
func Between(workspaces []string) string { return "," + strings.Join(workspaces, ",") + "," }
