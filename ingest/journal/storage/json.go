package storage

import "encoding/json"

// Pack returns a value as the JSON of a column. The column is "" if the value is empty.
func (tx *Txn) Pack(value any, empty bool) string {
	if empty {
		return ""
	}
	raw, err := json.Marshal(value)
	tx.Fail(err)
	return string(raw)
}

// Unpack is the reverse of Pack.
func Unpack(column string, into any) error {
	if column == "" {
		return nil
	}
	return json.Unmarshal([]byte(column), into)
}
