package card

import (
	"strings"
	"unicode/utf8"
)

// Form bounds the cards in the posts of a platform: a row of the table of what each platform can do. A limit of 0
// means that the platform has no such part; it is a text there. Every limit but numbers of things is in characters as Size
// counts them.
type Form struct {
	Size  func(text string) int
	Parts int // of a post
	Total int // of the texts of a post together; more than each limit of one text
	Text  int // of one text, and of one list
	// Join says that texts, lists and the like below each other are one part, and so are the fields and then the image below them.
	Join   bool
	Title  int
	Badges int // number in one part
	Tasks  int // number in one part; if it is 0, the limit of a text bounds them
	// Fields is the number in one part, with the lengths of a field's label and value.
	Fields, FieldLabel, FieldValue int
	// Rows and Columns bound a table, and Tables the tables of a post.
	Rows, Columns, Tables int
	Alt, URL              int // of an image
	Buttons, Label        int // the number in one part, in a post if it joins texts, and the length of a label
}

// Split returns the card as cards that each fit into one post, in order. The rest of a part that is too long or has too much
// follows as text, or in the next post: no character is lost.
func (f Form) Split(v View) []View {
	s := splitter{Form: f, status: v.Status}
	for i, p := range v.Parts {
		s.source = i
		s.part(p)
	}
	return s.views
}

// splitter fills posts with the pieces of parts.
type splitter struct {
	Form
	status string
	views  []View
	source int // the part that is divided
	// of the last view: its parts that count, its characters, its tables and buttons, and the source of its last part
	parts, total, tables, pressed, last int
}

// part adds a part piece by piece.
func (s *splitter) part(p Part) {
	switch p.Kind {
	case KindTitle:
		if s.Size(p.Text) > s.Title {
			p.Kind = KindText
		}
		s.text(p.Kind, p.Text)
	case KindBadges:
		s.badges(p)
	case KindFields:
		s.fields(p)
	case KindTable:
		s.table(p)
	case KindList, KindTasks:
		for _, i := range p.Items {
			if entry := p.Entry(i); s.Size(entry) > s.Text {
				s.text(KindText, entry)
			} else {
				s.add(Part{Kind: p.Kind, Items: []Item{i}})
			}
		}
	case KindImage:
		if s.URL == 0 || s.Size(p.Text) > s.Alt || s.Size(p.URL) > s.URL {
			s.text(KindText, addressed(p.Text, p.URL))
			return
		}
		s.add(p)
	case KindProgress:
		if s.Size(p.Bar()) > s.Text {
			s.text(KindText, p.Text)
			p.Text = ""
		}
		s.add(p)
	case KindButtons:
		s.buttons(p)
	case KindDivider:
		s.add(p)
	default:
		s.text(p.Kind, p.Text)
	}
}

func (s *splitter) badges(p Part) {
	for _, i := range p.Items {
		if s.Badges == 0 || s.Size(i.String()) > s.Text {
			s.text(KindText, i.String())
			continue
		}
		s.add(Part{Kind: KindBadges, Items: []Item{i}})
	}
}

func (s *splitter) fields(p Part) {
	for _, row := range p.Rows {
		if s.Size(row[0]) > s.FieldLabel || s.Size(row[1]) > s.FieldValue {
			s.text(KindText, row[0]+": "+row[1])
			continue
		}
		s.add(Part{Kind: KindFields, Rows: [][]string{row}})
	}
}

// table adds the rows of a table, each with its head, which is shown once in a part.
func (s *splitter) table(p Part) {
	width := len(p.Columns)
	for _, row := range p.Rows {
		width = max(width, len(row))
	}
	fits := s.Rows > 1 && width <= s.Columns && s.Size(Row(p.Columns)) <= s.Text
	for _, row := range p.Rows {
		fits = fits && s.Size(Row(row)) <= s.Text/2
	}
	switch {
	case !fits:
		for _, l := range p.plain() {
			s.text(KindText, l)
		}
	case p.Rows == nil:
		s.add(p)
	}
	if !fits {
		return
	}
	for _, row := range p.Rows {
		s.add(Part{Kind: KindTable, Columns: p.Columns, Rows: [][]string{row}})
	}
}

// buttons adds buttons. A label that is too long, or an address that the label would hide, is a text too.
func (s *splitter) buttons(p Part) {
	for _, b := range p.Buttons {
		if b.URL != "" {
			shown := b.Label + " (" + host(b.URL) + ")"
			if s.Buttons == 0 || s.Size(shown) > s.Label || s.Size(b.URL) > s.URL {
				s.text(KindText, addressed(b.Label, b.URL))
				continue
			}
			b.Label = shown
		} else if s.Size(b.Label) > s.Label {
			s.text(KindText, b.Label)
			b.Label = s.cut(b.Label, s.Label-1) + "…"
		}
		s.add(Part{Kind: KindButtons, Buttons: []Press{b}})
	}
}

// text adds a text in pieces, each with a part of its own or, if the platform joins texts, a line of one.
func (s *splitter) text(kind Kind, text string) {
	for text != "" {
		piece := s.cut(text, s.Text)
		text = strings.TrimPrefix(strings.TrimPrefix(text[len(piece):], "\n"), " ")
		s.add(Part{Kind: kind, Text: piece})
		if kind == KindTitle {
			kind = KindText
		}
	}
}

// cut returns the beginning of a text that has at most a number of characters: all of it, else up to the end of a line or
// a word if there is one in its second half.
func (s *splitter) cut(text string, limit int) string {
	if s.Size(text) <= limit {
		return text
	}
	low, high := 0, len(text) // the longest beginning that fits is between them
	for low < high {
		middle := (low + high + 1) / 2
		if s.Size(text[:middle]) <= limit {
			low = middle
		} else {
			high = middle - 1
		}
	}
	for low > 1 && !utf8.RuneStart(text[low]) {
		low--
	}
	head := text[:max(low, 1)]
	for _, sep := range []string{"\n", " "} {
		if at := strings.LastIndex(head, sep); at > len(head)/2 {
			head = head[:at]
			break
		}
	}
	for s.Size(head) > limit && len(head) > 1 { // the escaped form of a cut address may be longer
		_, n := utf8.DecodeLastRuneInString(head)
		head = head[:len(head)-n]
	}
	return head
}

// add adds a piece to the last post: to its last part if that is of the same source and has room. It begins a post if the
// last one is full.
func (s *splitter) add(p Part) {
	size := 0
	for _, l := range p.plain() {
		size += s.Size(l) + 1
	}
	if s.goesOn(&p) {
		v := &s.views[len(s.views)-1]
		last := &v.Parts[len(v.Parts)-1]
		if p.Columns != nil {
			size -= s.Size(Row(p.Columns)) + 1
		}
		if s.total+size <= s.Total && s.room(&p) {
			s.pressed += len(p.Buttons)
			last.Items, last.Rows, last.Buttons = append(last.Items, p.Items...), append(last.Rows, p.Rows...), append(last.Buttons, p.Buttons...)
			s.total += size
			return
		}
	}
	weight, table := s.weight(p.Kind), 0
	if p.Kind == KindTable {
		table = 1
	}
	if len(s.views) == 0 || s.parts+weight > s.Parts || s.total+size > s.Total || s.tables+table > s.Tables && table > 0 || !s.room(&p) {
		s.views = append(s.views, View{Status: s.status})
		s.parts, s.total, s.tables, s.pressed = 0, 0, 0, 0
		weight = 1
	}
	v := &s.views[len(s.views)-1]
	v.Parts = append(v.Parts, p)
	s.parts, s.total, s.tables, s.last = s.parts+weight, s.total+size, s.tables+table, s.source
	s.pressed += len(p.Buttons)
}

// room reports whether the last post has room for the buttons of a piece.
func (s *splitter) room(p *Part) bool { return !s.Join || s.pressed+len(p.Buttons) <= s.Buttons }

// goesOn reports whether a piece goes on with the last part of the last post.
func (s *splitter) goesOn(p *Part) bool {
	if len(s.views) == 0 || s.last != s.source {
		return false
	}
	parts := s.views[len(s.views)-1].Parts
	last := &parts[len(parts)-1]
	if last.Kind != p.Kind {
		return false
	}
	switch p.Kind {
	case KindBadges:
		return len(last.Items) < s.Badges
	case KindFields:
		return len(last.Rows) < s.Fields
	case KindTable:
		return len(last.Rows) < s.Rows-1 // and the head
	case KindButtons:
		return len(last.Buttons) < s.Buttons
	case KindList, KindTasks:
		if p.Kind == KindTasks && s.Tasks > 0 {
			return len(last.Items) < s.Tasks
		}
		size := 0
		for _, l := range append(last.plain(), p.plain()...) {
			size += s.Size(l) + 1
		}
		return size <= s.Text
	}
	return false
}

// weight returns the number of parts that a further piece of a kind takes.
func (s *splitter) weight(kind Kind) int {
	switch {
	case !s.Join:
		return 1
	case kind == KindButtons:
		return 0 // they stand below the post
	case len(s.views) == 0 || s.lastKind() == KindImage, kind != KindImage && s.lastKind() == KindFields:
		return 1
	}
	return 0
}

// lastKind returns the kind of the last part that is no buttons.
func (s *splitter) lastKind() (kind Kind) {
	for _, p := range s.views[len(s.views)-1].Parts {
		if p.Kind != KindButtons {
			kind = p.Kind
		}
	}
	return kind
}
