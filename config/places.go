package config

// Places tells where the keys of workspaces stand in their files. The zero value
// knows none.
type Places struct {
	files map[string]*file // by workspace id
}

// Fault is one about a workspace's key, such as "slack.bot_token": at its line, or
// at that of what it would stand in.
func (p Places) Fault(workspace, key, words string) Fault {
	f := p.files[workspace]
	if f == nil {
		return Fault{File: File, Line: 1, Key: key, Words: words}
	}
	return Fault{File: f.name, Line: f.line(key), Key: key, Words: words}
}
