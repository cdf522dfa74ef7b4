package config

// Places locates keys in their files. The zero value locates none.
type Places struct {
	files map[string]*file // by workspace id; parley.yaml has none
}

// Fault returns a fault of a workspace's key, such as "slack.bot_token", or of a key of
// parley.yaml if the workspace is empty. Its line is that of the key, or of the key that would
// contain it.
func (p Places) Fault(workspace, key, words string) Fault {
	f := p.files[workspace]
	if f == nil {
		return Fault{File: File, Line: 1, Key: key, Words: words}
	}
	return Fault{File: f.name, Line: f.line(key), Key: key, Words: words}
}
