package postgres

// WordScan implements storage.WordScanner. The planner uses the index of words for the operator @@ alone, and not for the
// function that is behind it.
func (e *Engine) WordScan() string {
	return `(SELECT rowid FROM search_words WHERE ts_match_vq(words, CAST(replace($1, ' ', ' & ') AS tsquery))) s`
}
