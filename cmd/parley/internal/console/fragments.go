package console

import (
	"bytes"

	"golang.org/x/net/html"
)

// fragment is an element of a page that changes while somebody looks at it: one that has an id and
// the attribute data-live. It contains no other fragment.
type fragment struct {
	ID string `json:"id"`
	// HTML is the whole element; "" if the page no longer has it.
	HTML string `json:"html,omitempty"`
	// List is the id of the nearest element around it that has the attribute data-list.
	List string `json:"list,omitempty"`
	// After is the id of the fragment before it in the same list; "" if it is the first one.
	After string `json:"after,omitempty"`
}

// fragmentsOf returns the fragments of a page in their order. Our own templates made the page, so each
// element has an end tag, unless it is void.
func fragmentsOf(page []byte) []fragment {
	var found []fragment
	at := scanner{page: page}
	for z := html.NewTokenizer(bytes.NewReader(page)); z.Next() != html.ErrorToken; {
		from := at.to
		at.to += len(z.Raw())
		switch token := z.Token(); token.Type {
		case html.StartTagToken:
			at.open(token, from)
		case html.EndTagToken:
			if f := at.close(); f != nil {
				found = append(found, *f)
			}
		}
	}
	return found
}

// scanner is a position in a page.
type scanner struct {
	page   []byte
	to     int       // the end of the token that was read last
	around []element // the open elements
}

// element is an open element of a page.
type element struct {
	id    string
	live  bool
	list  bool
	from  int    // the place of its start tag
	child string // the id of the last fragment in it, if it is a list
}

// isVoid has the names of the elements without an end tag that the templates use.
var isVoid = map[string]bool{"br": true, "hr": true, "img": true, "input": true, "link": true, "meta": true, "wbr": true}

func (s *scanner) open(token html.Token, from int) {
	if isVoid[token.Data] {
		return
	}
	e := element{from: from}
	for _, a := range token.Attr {
		switch a.Key {
		case "id":
			e.id = a.Val
		case "data-live":
			e.live = true
		case "data-list":
			e.list = true
		}
	}
	s.around = append(s.around, e)
}

// close ends the innermost element. It returns the element if it is a fragment.
func (s *scanner) close() *fragment {
	if len(s.around) == 0 {
		return nil
	}
	e := s.around[len(s.around)-1]
	s.around = s.around[:len(s.around)-1]
	if !e.live {
		return nil
	}
	f := fragment{ID: e.id, HTML: string(s.page[e.from:s.to])}
	for i := len(s.around) - 1; i >= 0; i-- {
		if list := &s.around[i]; list.list {
			f.List, f.After, list.child = list.id, list.child, e.id
			break
		}
	}
	return &f
}

// changes returns the fragments of the page that its readers do not have yet, and those that the
// page no longer has.
func changes(before, now []fragment) []fragment {
	had := make(map[string]string, len(before))
	for _, f := range before {
		had[f.ID] = f.HTML
	}
	var changed []fragment
	for _, f := range now {
		if old, ok := had[f.ID]; !ok || old != f.HTML {
			changed = append(changed, f)
		}
		delete(had, f.ID)
	}
	for _, f := range before {
		if _, gone := had[f.ID]; gone {
			changed = append(changed, fragment{ID: f.ID})
		}
	}
	return changed
}
