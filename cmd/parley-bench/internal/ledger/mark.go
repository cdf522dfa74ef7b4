package ledger

import (
	"fmt"
	"regexp"
	"strconv"
)

// Mark identifies a message's revision, and a part of the reply to it, in a text.
func Mark(id, revision, part int) string { return fmt.Sprintf("m%d r%d p%d", id, revision, part) }

var markPattern = regexp.MustCompile(`\bm(\d{1,9}) r(\d{1,9}) p(\d{1,9})\b`)

// ReadMark finds the first mark in a text.
func ReadMark(text string) (id, revision, part int, ok bool) {
	found := markPattern.FindStringSubmatch(text)
	if found == nil {
		return 0, 0, 0, false
	}
	return toInt(found[1]), toInt(found[2]), toInt(found[3]), true
}

// LastMark finds the last mark in a text.
func LastMark(text string) (id, revision int, ok bool) {
	marks := markPattern.FindAllString(text, -1)
	if len(marks) == 0 {
		return 0, 0, false
	}
	id, revision, _, ok = ReadMark(marks[len(marks)-1])
	return id, revision, ok
}

// ReadMarks returns the messages of all marks in a text.
func ReadMarks(text string) (ids []int) {
	for _, found := range markPattern.FindAllStringSubmatch(text, -1) {
		ids = append(ids, toInt(found[1]))
	}
	return ids
}

// toInt converts the digits of a mark, which are few enough for an int.
func toInt(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
