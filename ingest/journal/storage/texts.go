package storage

import (
	"context"
	"errors"
	"slices"
)

// Texts are columns of a table in which words of people may stand that no message leads to.
type Texts struct {
	// Page is the query for the key and the texts of some rows of the workspace $1, in the order of the key, after the key that begins
	// with $2.
	Page string
	// First is a key before all others: an int64 or a string for each of its columns.
	First []any
	// Columns is the number of texts.
	Columns int
	// Empty are the statements that remove the texts of a row. They get the key and then the workspace.
	Empty []string
}

// Remove removes the texts of the rows of a workspace in one of which has is true.
func (t Texts) Remove(ctx context.Context, db *DB, workspace string, has func(text []byte) bool) (rows int64, err error) {
	for after := t.First; after != nil; {
		var found [][]any
		page, err := Read(ctx, db, func(tx *Txn) [][]any { return t.page(tx, workspace, after) })
		if err != nil {
			return rows, err
		}
		after = nil
		for _, row := range page {
			key, texts := row[:len(t.First)], row[len(t.First):]
			after = key
			if slices.ContainsFunc(texts, func(text any) bool { return has(bytesOf(text)) }) {
				found = append(found, key)
			}
		}
		if len(found) == 0 {
			continue
		}
		if err := db.Change(ctx, "", func(tx *Txn) {
			for _, key := range found {
				for _, empty := range t.Empty {
					tx.Do(empty, append(slices.Clone(key), workspace)...)
				}
			}
		}); err != nil {
			return rows, err
		}
		rows += int64(len(found))
		db.Erased()
	}
	return rows, nil
}

// page reads the rows after a key.
func (t Texts) page(tx *Txn, workspace string, after []any) (page [][]any) {
	bytes := 0
	err := tx.engine.Rows(func(scan func(...any) error) error {
		if bytes >= PageBytes {
			return errPageFull
		}
		row, dest := make([]any, len(t.First)+t.Columns), make([]any, len(t.First)+t.Columns)
		for i := range row {
			dest[i] = &row[i]
		}
		err := scan(dest...)
		for _, value := range row {
			bytes += len(bytesOf(value))
		}
		page = append(page, row)
		return err
	}, t.Page, append([]any{workspace}, after...)...)
	if !errors.Is(err, errPageFull) {
		tx.Fail(err)
	}
	return page
}

// bytesOf returns a text or the bytes of a row; nil for any other value.
func bytesOf(value any) []byte {
	switch v := value.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return nil
}
