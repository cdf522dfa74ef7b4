package markdown

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// split fills posts of at most limit UTF-16 units with atoms. A post ends at the strongest
// white space in its second half: an empty line, a newline, a space. Without one, it
// ends at its last white space. Without any, it ends inside a word. fits says that every atom
// fitted into the first post.
func split(atoms []atom, limit int) (posts []post, fits bool) {
	w := &splitter{limit: limit, atoms: atoms, fits: true}
	for w.next < len(w.atoms) {
		w.step()
	}
	w.finish()
	return w.posts, w.fits
}

// post is the text of a post. blanks are where its empty lines between paragraphs are.
type post struct {
	text   string
	blanks []int
}

// openMark is a mark around the next atoms. The splitter writes it before visible text,
// so that no mark is empty.
type openMark struct {
	mark    *mark
	written bool // in this post
	before  bool // in an earlier post
}

// text returns the text that opens the mark.
func (o openMark) text() string {
	if o.before {
		return o.mark.again
	}
	return o.mark.open
}

// pendingSpace is white space that the splitter writes before visible text.
type pendingSpace struct {
	atom  atom
	depth int // the number of open marks
}

// place is a place at which a post may end: before the white space at next-1.
type place struct {
	kind kind
	next int // the first atom of the next post
	size int // of the post, if it ends here
	end  int // the number of bytes of the post, if it ends here
	open []openMark
}

type splitter struct {
	limit int
	atoms []atom
	next  int
	posts []post
	fits  bool

	post    []byte
	blanks  []int // in post
	size    int   // of post, in UTF-16 units
	open    []openMark
	pending []pendingSpace
	places  []place // in order
	edge    bool    // the post ends with the closing of a tight mark
}

func (w *splitter) step() {
	a := &w.atoms[w.next]
	switch {
	case a.kind == opening:
		w.open = append(w.open, openMark{mark: a.mark})
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

// addSpace adds white space to the pending white space, and its place to the places.
// Outside of code, the stronger one of two neighbours replaces both.
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
	w.pending = append(w.pending, pendingSpace{a, len(w.open)})
}

// write adds pending white space, unwritten marks and visible text to the post. It
// returns false and adds nothing if the post has no room for them and for the ends of
// the open marks.
func (w *splitter) write(text string) bool {
	// A UTF-16 unit has at most 3 bytes. The units of a longer text are not counted, because
	// each post of a very long word would count the rest of that word again.
	if len(text) > 3*w.limit {
		return false
	}
	before, blanks := w.lead(text)
	size := w.size + units(before) + units(text)
	for _, o := range w.open {
		size += units(o.mark.close)
	}
	if size > w.limit {
		return false
	}
	w.append(before)
	w.append(text)
	w.blanks = append(w.blanks, blanks...)
	for i := range w.open {
		w.open[i].written = true
	}
	w.pending, w.edge = w.pending[:0], false
	return true
}

// lead returns the text to write before visible text: white space, marks, and zero-width
// spaces between characters that together would be syntax. blanks are where its empty lines will be.
func (w *splitter) lead(text string) (before string, blanks []int) {
	var b strings.Builder
	last := func() rune { // the last character so far
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
				if o.mark.tight && joins(last()) {
					b.WriteString(zeroWidth)
				}
				b.WriteString(o.text())
			}
		}
	}
	for _, p := range w.pending {
		openTo(p.depth)
		if len(w.post) > 0 {
			if p.atom.kind == blank {
				blanks = append(blanks, len(w.post)+b.Len())
			}
			b.WriteString(p.atom.text)
		}
	}
	openTo(len(w.open))
	first, _ := utf8.DecodeRuneInString(text)
	if (w.edge && b.Len() == 0 && joins(first)) || (first == '`' && last() == '`') {
		b.WriteString(zeroWidth)
	}
	return b.String(), blanks
}

// joins reports whether a platform may see no edge of a word beside the character.
func joins(r rune) bool { return isWordRune(r) || isCJK(r) }

func (w *splitter) append(s string) {
	w.post = append(w.post, s...)
	w.size += units(s)
}

// overflow makes room for an atom that does not fit.
func (w *splitter) overflow(a *atom) {
	w.fits = false
	switch p := w.best(); {
	case p != nil:
		w.post, w.size, w.open, w.next = w.post[:p.end], p.size, p.open, p.next
		w.finish()
	case a.kind == word && w.writeStart(a), len(w.post) > 0:
		w.finish()
	case len(a.pieces) > 0:
		w.atoms = append(w.atoms[:w.next:w.next], append(a.pieces, w.atoms[w.next+1:]...)...)
	default: // the marks alone fill a post, so the text goes on without them
		for i := range w.open {
			w.open[i].mark = &mark{}
		}
	}
}

// writeStart writes the part of a word that fits, and leaves the rest. It drops white
// space at the beginning of code that is longer than a post.
func (w *splitter) writeStart(a *atom) bool {
	n := w.fit(a.text)
	start := a.text[:n]
	if n == 0 || (strings.TrimSpace(start) != "" && !w.write(start)) {
		return false
	}
	a.text = a.text[n:]
	return true
}

// best returns the best place to end the post, or nil.
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

// rank orders the kinds of white space; a post ends best at the highest rank.
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

// fit returns the number of bytes of the text that fit into the post, in whole graphemes.
// If an empty post has no room for the first grapheme, it counts whole characters.
func (w *splitter) fit(text string) int {
	before, _ := w.lead(text)
	room := w.limit - w.size - units(before)
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

// fitRunes returns the number of bytes of s that fit into room, in whole characters, at
// least one.
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

// finish ends the post. It closes the marks, which the next post opens again.
func (w *splitter) finish() {
	for i := len(w.open) - 1; i >= 0; i-- {
		o := &w.open[i]
		if o.written {
			w.append(o.mark.close)
			o.written, o.before = false, true
		}
	}
	if len(w.post) > 0 {
		for len(w.blanks) > 0 && w.blanks[len(w.blanks)-1] >= len(w.post) { // the post was cut there
			w.blanks = w.blanks[:len(w.blanks)-1]
		}
		w.posts = append(w.posts, post{string(w.post), w.blanks})
	}
	w.blanks = nil
	w.post, w.size, w.pending, w.places, w.edge = w.post[:0], 0, w.pending[:0], w.places[:0], false
}

// units returns the length in UTF-16 units.
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
