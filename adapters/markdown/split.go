package markdown

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// split fills posts of at most limit UTF-16 units with atoms. It cuts at the
// strongest white space in a post's second half (an empty line, a newline, a
// space), else at the last there is, else inside a word.
func split(atoms []atom, limit int) []string {
	w := &splitter{limit: limit, atoms: atoms}
	for w.next < len(w.atoms) {
		w.step()
	}
	w.finish()
	return w.posts
}

// opened is a mark that the text is inside of. It is written when something
// visible follows, so that nothing empty is ever marked.
type opened struct {
	mark    *mark
	written bool // in this post
	before  bool // in an earlier one
}

// text is what opens the mark here.
func (o opened) text() string {
	if o.before {
		return o.mark.again
	}
	return o.mark.open
}

// waiting is white space that is written when something visible follows.
type waiting struct {
	atom  atom
	depth int // so many marks were open
}

// place is where a post may end: before the white space at next-1.
type place struct {
	kind kind
	next int // the atom that the next post begins with
	size int // of the post up to here
	end  int // bytes of the post up to here
	open []opened
}

type splitter struct {
	limit int
	atoms []atom
	next  int
	posts []string

	post    []byte
	size    int // of post, in UTF-16 units
	open    []opened
	pending []waiting
	places  []place // where this post may end, in order
	edge    bool    // the last thing written is a tight mark's end
}

func (w *splitter) step() {
	a := &w.atoms[w.next]
	switch {
	case a.kind == opening:
		w.open = append(w.open, opened{mark: a.mark})
	case a.kind == closing:
		w.closeMark()
	case a.isSpace():
		w.addSpace(*a)
	case !w.write(a.text):
		w.overflow(a)
		return
	}
	w.next++
}

func (w *splitter) closeMark() {
	last := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	for i := range w.pending {
		w.pending[i].depth = min(w.pending[i].depth, len(w.open))
	}
	if last.written {
		w.append(last.mark.close)
		w.edge = last.mark.tight
	}
}

// addSpace remembers white space, and the place. Outside of code the stronger of
// two neighbours stands for both.
func (w *splitter) addSpace(a atom) {
	if len(w.post) > 0 {
		w.places = append(w.places, place{a.kind, w.next + 1, w.size, len(w.post), slices.Clone(w.open)})
	}
	if n := len(w.pending); n > 0 && a.kind != codeLine && w.pending[n-1].atom.kind != codeLine {
		if a.kind > w.pending[n-1].atom.kind {
			w.pending[n-1].atom = a
		}
		return
	}
	w.pending = append(w.pending, waiting{a, len(w.open)})
}

// write adds visible text with what waits before it, if all of it and the marks
// that are then to be closed find room.
func (w *splitter) write(text string) bool {
	before := w.lead(text)
	size := w.size + units(before) + units(text)
	for _, o := range w.open {
		size += units(o.mark.close)
	}
	if size > w.limit {
		return false
	}
	w.append(before)
	w.append(text)
	for i := range w.open {
		w.open[i].written = true
	}
	w.pending, w.edge = w.pending[:0], false
	return true
}

// lead is what must stand before the visible text: white space, marks, and what
// keeps them apart.
func (w *splitter) lead(text string) string {
	var b strings.Builder
	last := func() rune { // the one before what comes next
		r, _ := utf8.DecodeLastRuneInString(b.String())
		if b.Len() == 0 {
			r, _ = utf8.DecodeLastRune(w.post)
		}
		return r
	}
	next := 0
	openTo := func(depth int) {
		for ; next < depth; next++ {
			if o := w.open[next]; !o.written {
				if o.mark.tight && isWordRune(last()) {
					b.WriteString(zeroWidth)
				}
				b.WriteString(o.text())
			}
		}
	}
	for _, p := range w.pending {
		openTo(p.depth)
		if len(w.post) > 0 {
			b.WriteString(p.atom.text)
		}
	}
	openTo(len(w.open))
	first, _ := utf8.DecodeRuneInString(text)
	if (w.edge && b.Len() == 0 && isWordRune(first)) || (first == '`' && last() == '`') {
		b.WriteString(zeroWidth)
	}
	return b.String()
}

func (w *splitter) append(s string) {
	w.post = append(w.post, s...)
	w.size += units(s)
}

// overflow makes room for an atom that did not fit.
func (w *splitter) overflow(a *atom) {
	switch p := w.best(); {
	case p != nil:
		w.post, w.size, w.open, w.next = w.post[:p.end], p.size, p.open, p.next
		w.finish()
	case a.kind == word && w.writeStart(a), len(w.post) > 0:
		w.finish()
	case len(a.pieces) > 0:
		w.atoms = append(w.atoms[:w.next:w.next], append(a.pieces, w.atoms[w.next+1:]...)...)
	default: // the marks alone fill a post, so many are they: do without
		for i := range w.open {
			w.open[i].mark = &mark{}
		}
	}
}

// writeStart writes as much of a word as there is room for, and leaves the rest.
// Code may begin with more white space than a post can hold; that is dropped.
func (w *splitter) writeStart(a *atom) bool {
	n := w.fit(a.text)
	start := a.text[:n]
	if n == 0 || (strings.TrimSpace(start) != "" && !w.write(start)) {
		return false
	}
	a.text = a.text[n:]
	return true
}

// best is the place to end the post at.
func (w *splitter) best() *place {
	var best *place
	for i := range w.places {
		p := &w.places[i]
		late := p.size >= w.limit/2
		if best == nil || late && rank(p.kind) >= rank(best.kind) || best.size < w.limit/2 {
			best = p
		}
	}
	return best
}

// rank orders white space by how well a post ends there.
func rank(k kind) int {
	switch k {
	case blank:
		return 2
	case newline, codeLine:
		return 1
	default:
		return 0
	}
}

// fit is how many bytes of the text there is room for: whole graphemes, or, if
// not even one finds room in an empty post, whole characters.
func (w *splitter) fit(text string) int {
	room := w.limit - w.size - units(w.lead(text))
	for _, o := range w.open {
		room -= units(o.mark.close)
	}
	n, rest, state := 0, text, -1
	for rest != "" {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if room -= units(cluster); room < 0 {
			if n == 0 && len(w.post) == 0 {
				return fitRunes(cluster, room+units(cluster))
			}
			break
		}
		n += len(cluster)
	}
	return n
}

func fitRunes(s string, room int) int {
	n := 0
	for _, r := range s {
		if room -= units(string(r)); room < 0 && n > 0 {
			break
		}
		n += utf8.RuneLen(r)
	}
	return n
}

// finish ends the post: its marks are closed, and open again in the next.
func (w *splitter) finish() {
	for i := len(w.open) - 1; i >= 0; i-- {
		o := &w.open[i]
		if o.written {
			w.append(o.mark.close)
			o.written, o.before = false, true
		}
	}
	if len(w.post) > 0 {
		w.posts = append(w.posts, string(w.post))
	}
	w.post, w.size, w.pending, w.places, w.edge = w.post[:0], 0, w.pending[:0], w.places[:0], false
}

// units is the length in UTF-16 units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}
