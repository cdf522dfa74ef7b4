package assembly

import (
	"cmp"
	"slices"
	"strings"
)

// Assemble returns the messages of a thread for the agent with this id: for each turn its
// context block, its messages and the reply. The turns are in the thread's order, the
// current one last. If they do not fit into the window, Assemble leaves out whole turns,
// the oldest first; before it leaves out a turn, it only names the turn's files that are words.
// It does not change its arguments, and the same arguments give the
// same messages. Mentions may be nil: then no source is known. others are the ids of the other agents:
// a name that reads like one gets its author's id.
func Assemble(agent string, turns []Turn, window Window, mentions Mentions, others ...string) []Message {
	if window.Turns < len(turns) {
		turns = turns[len(turns)-max(window.Turns, min(1, len(turns))):]
	}
	names := naming{clean(agent), mentions, others}
	shown := fit(names, turns, window)
	visible := map[string]bool{}
	for _, s := range shown {
		s.markVisible(visible)
	}
	var messages []Message
	for _, s := range shown {
		if s.quotes() {
			s.messages = s.view.render(names, visible)
		}
		messages = append(messages, s.messages...)
	}
	giveOnce(messages)
	return messages
}

// giveOnce leaves out each stored file that an earlier message gives, too. The words around it still name it.
func giveOnce(messages []Message) {
	type place struct{ bucket, path string }
	given := map[place]bool{}
	for i := range messages {
		isGiven := func(p Part) bool {
			return p.File != nil && p.File.Path != "" && given[place{p.File.Bucket, p.File.Path}]
		}
		m := &messages[i]
		if slices.ContainsFunc(m.Parts, isGiven) && !isGiven(m.Parts[0]) {
			m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), isGiven)
		}
		for _, p := range m.Parts {
			if p.File != nil && p.File.Path != "" {
				given[place{p.File.Bucket, p.File.Path}] = true
			}
		}
	}
}

// rendered is a turn with its messages and all quotations.
type rendered struct {
	view
	messages []Message
}

// fit returns the newest turns whose text is within the window's bytes, in order. It always
// returns the last turn.
func fit(names naming, turns []Turn, window Window) []rendered {
	var shown []rendered
	left := window.Bytes
	for i := len(turns) - 1; i >= 0; i-- {
		r := rendered{view: viewOf(turns[i], window.Thread)}
		r.messages = r.render(names, map[string]bool{})
		for size(r.messages) > left && r.dropWords() {
			r.messages = r.render(names, map[string]bool{})
		}
		left -= size(r.messages)
		if left < 0 && len(shown) > 0 {
			break
		}
		shown = append(shown, r)
	}
	slices.Reverse(shown)
	return shown
}

// dropWords leaves the words of the first file that has some out of the view, so that the file
// is only named. It changes copies, and returns false if no file has words.
func (v *view) dropWords() bool {
	for i := range v.Messages {
		m := &v.Messages[i]
		at := slices.IndexFunc(m.Files, func(f File) bool { return f.Words != "" })
		if at < 0 {
			continue
		}
		m.Files = slices.Clone(m.Files)
		m.Files[at].Words = ""
		return true
	}
	return false
}

// view is a turn for rendering: in order, without empty and surplus lines.
type view struct {
	Turn
	// supplied is an integration's block, which replaces ours.
	supplied string
}

// viewOf returns the view of a turn. It changes copies of the turn's slices.
func viewOf(t Turn, lines int) view {
	t.Messages = inOrder(t.Messages)
	for _, m := range slices.Backward(t.Messages) {
		if text := lastLines(m.Metadata.ThreadContext, maxSupplied); text != "" {
			t.OpenedOn, t.Root, t.Context, t.Earlier, t.Gap = nil, nil, nil, 0, false
			return view{Turn: t, supplied: text}
		}
	}
	t.Context = slices.DeleteFunc(inOrder(t.Context), func(l Line) bool { return l.empty() })
	if surplus := len(t.Context) - max(lines, 0); surplus > 0 {
		t.Context = t.Context[surplus:]
		t.Earlier += surplus
	}
	v := view{Turn: t}
	v.giveFiles()
	return v
}

// maxGiven bounds the files of a block that the turn's message gives.
const maxGiven = 10

// giveFiles adds the files of the block to the turn's last message, the newest first: a question about a picture or a
// log seldom has it itself. A file that is neither a picture, a document that the agent takes, nor words is only named by its line.
func (v *view) giveFiles() {
	if len(v.Messages) == 0 {
		return
	}
	var given []File
	give := func(line *Line) {
		for _, file := range line.Files {
			if len(given) < maxGiven && !line.Own && (file.Words != "" || file.Path != "" && (file.IsPicture() || file.Document)) {
				given = append(given, file)
			}
		}
	}
	for i := range slices.Backward(v.Context) {
		give(&v.Context[i])
	}
	if v.Root != nil {
		give(v.Root)
	}
	for i := range slices.Backward(v.OpenedOn) {
		give(&v.OpenedOn[i])
	}
	if len(given) > 0 {
		last := &v.Messages[len(v.Messages)-1]
		last.Files = slices.Concat(last.Files, given)
	}
}

// inOrder returns a copy, ordered by the platform's time and then by thread_seq.
func inOrder(lines []Line) []Line {
	return slices.SortedStableFunc(slices.Values(lines), func(a, b Line) int {
		return cmp.Or(a.SentAt.Compare(b.SentAt), cmp.Compare(a.Seq, b.Seq))
	})
}

// empty reports whether a line has nothing to show.
func (l *Line) empty() bool {
	return len(l.Files) == 0 && len(l.Forwarded) == 0 && l.Quoted == nil && strings.TrimSpace(l.typed()) == ""
}

// ownFiles are the line's files that no quotation and no forward names. They come before the others.
func (l *Line) ownFiles() []File {
	n := len(l.Files)
	if l.Quoted != nil {
		n -= len(l.Quoted.FileNames)
	}
	for i := range l.Forwarded {
		n -= len(l.Forwarded[i].FileNames)
	}
	return l.Files[:max(n, 0)]
}

// render returns the turn's messages. See block for visible.
func (v *view) render(names naming, visible map[string]bool) []Message {
	messages := make([]Message, 0, 2+len(v.Messages))
	builder := block{naming: names, visible: visible}
	if text := builder.build(v); text != "" {
		messages = append(messages, Message{ID: contextID + v.id(), Role: RoleSystem, Parts: []Part{{Text: text}}})
	}
	for i := range v.Messages {
		messages = append(messages, names.message(&v.Messages[i]))
	}
	if v.Reply != nil && !v.Reply.empty() {
		reply := *v.Reply
		reply.Own = true
		messages = append(messages, names.message(&reply))
	}
	return messages
}

// id returns the id of the turn's first message, or of the reply if the messages were deleted.
func (v *view) id() string {
	if len(v.Messages) == 0 {
		return v.Reply.ID
	}
	return v.Messages[0].ID
}

// each calls do for every line that the agent reads, without quotations.
func (v *view) each(do func(l *Line)) {
	for _, l := range []*Line{v.Root, v.Reply} {
		if l != nil {
			do(l)
		}
	}
	for _, lines := range [][]Line{v.OpenedOn, v.Context, v.Messages} {
		for i := range lines {
			do(&lines[i])
		}
	}
}

// inBlock returns the lines of the turn's block, in the order in which the block shows them.
func (v *view) inBlock() []Line {
	lines := slices.Clone(v.OpenedOn)
	if v.Root != nil {
		lines = append(lines, *v.Root)
	}
	return append(lines, v.Context...)
}

// markVisible marks the messages that the agent sees in this turn.
func (v *view) markVisible(visible map[string]bool) {
	v.each(func(l *Line) { visible[l.ExternalID] = true })
}

// quotes reports whether the turn has quotations, which depend on the messages of the
// other turns.
func (v *view) quotes() bool {
	found := false
	v.each(func(l *Line) { found = found || l.Quoted != nil })
	return found
}
