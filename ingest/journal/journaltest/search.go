package journaltest

import (
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/search"
	"parley/ingest/journal/storage"
)

func searchPromises() []promise {
	return []promise{
		{"a message is found by each of its words, in any case and order", searchWords},
		{"a text that is no word breaks no query", searchSigns},
		{"a search finds nothing of another workspace or thread", searchPlaces},
		{"pages have each message once, the last recorded first", searchPages},
		{"a common word is found far behind the newest messages", searchFar},
		{"the words of an edited message are its present ones", searchEdited},
		{"the words of a deleted message leave the index", searchDeleted},
		{"a message that is committed late is found", searchLate},
		{"many messages are found after a restart at any time", searchRestart},
		{"a removed workspace leaves the index", searchRemoved},
		{"people are found by a part of their newest name, or by their id", searchPeople},
	}
}

// fill brings the index up to date.
func (f *fixture) fill() {
	f.Helper()
	f.must(f.Search.FillSearch(f.ctx))
}

// search returns the contents of the messages that are found.
func (f *fixture) search(text string) []string {
	f.Helper()
	return f.searchFor(search.Query{Workspace: workspace, Text: text, Limit: 100})
}

func (f *fixture) searchFor(q search.Query) []string {
	f.Helper()
	list, _, err := f.Search.SearchMessages(f.ctx, q)
	f.must(err)
	return each(list, func(m search.Found) string { return m.Content })
}

// index returns the number of messages whose words the index has.
func (f *fixture) index(word string) (n int64) {
	f.Helper()
	f.must(f.engine.ReadOne(f.ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&n}, `SELECT count(*) FROM search_words($1)`, word)
		return err
	}))
	return n
}

func searchWords(f *fixture) {
	f.message(threadKey(1), said("C1/1", "The Über-Deploy of build.failed at 10:30, see https://ci.example.com/42"), passive)
	f.message(threadKey(2), said("C1/2", "デプロイ 完了 and nothing else"), passive)
	same(f, "before the index is filled", f.search("deploy"), []string{})
	f.fill()
	for _, text := range []string{"deploy", "DEPLOY über", "uber", "failed build", "example 42", "30", "10:30"} {
		same(f, text, len(f.search(text)), 1)
	}
	for _, text := range []string{"完了", "デプロイ", "プロ"} {
		same(f, text, f.search(text), []string{"デプロイ 完了 and nothing else"})
	}
	for _, text := range []string{"deploys", "depl", "deploy nothing", "完全"} {
		same(f, text, f.search(text), []string{})
	}
}

func searchSigns(f *fixture) {
	f.message(threadKey(1), said("C1/1", `it's "x" AND (y OR NOT z) & | ! : * \ ' NEAR`), passive)
	f.fill()
	for _, text := range []string{`"x`, `x AND y`, `NOT (z`, `x & ! y`, `s* :`, `'s \`, `near OR`} {
		same(f, text, len(f.search(text)), 1)
	}
	same(f, "the word of a workspace", f.search("§acme"), []string{})
	for _, text := range []string{"", `"&|!`, "a b c d e f g h i j k l m n o p q r s t u"} {
		_, _, err := f.Search.SearchMessages(f.ctx, search.Query{Workspace: workspace, Text: text, Limit: 1})
		var faults event.FieldErrors
		same(f, "faults of "+text, fmt.Sprintf("%T", err), fmt.Sprintf("%T", faults))
	}
}

func searchPlaces(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one word"), passive)
	f.message(threadKey(2), said("C1/2", "two word"), passive)
	f.fill()
	same(f, "another workspace", f.searchFor(search.Query{Workspace: "ac", Text: "word", Limit: 9}), []string{})
	same(f, "a thread", f.searchFor(search.Query{Workspace: workspace, Thread: f.threadID(threadKey(1)), Text: "word", Limit: 9}), []string{"one word"})
	_, _, err := f.Search.SearchMessages(f.ctx, search.Query{Workspace: "other", Thread: f.threadID(threadKey(1)), Text: "word", Limit: 9})
	f.fails("a thread of another workspace", err, storage.ErrNotFound)
}

func searchPages(f *fixture) {
	for n := range 5 {
		f.message(threadKey(1), said(fmt.Sprintf("C1/%d", n), fmt.Sprintf("word %d", n)), passive)
	}
	f.message(threadKey(1), said("C1/late", "word of a deleted message"), passive)
	f.fill()
	f.change(threadKey(1), deleted("C1/late"), nil) // the index still has it
	var got []string
	for q := (search.Query{Workspace: workspace, Text: "word", Limit: 2}); ; {
		list, next, err := f.Search.SearchMessages(f.ctx, q)
		f.must(err)
		for _, m := range list {
			got = append(got, m.Content)
		}
		if q.Before = next; next == "" {
			break
		}
	}
	same(f, "pages", got, []string{"word 4", "word 3", "word 2", "word 1", "word 0"})
}

// searchFar: an engine may look among the newest messages first.
func searchFar(f *fixture) {
	for n := range 3 {
		f.message(threadKey(1), said(fmt.Sprintf("C1/%d", n), fmt.Sprintf("word %d", n)), passive)
	}
	f.fill()
	f.must(f.engine.Write(f.ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`INSERT INTO search_words (rowid, words) VALUES (9000000, 'word')`) // of another workspace
		return err
	}))
	list, next, err := f.Search.SearchMessages(f.ctx, search.Query{Workspace: workspace, Text: "word", Limit: 2})
	f.must(err)
	same(f, "far behind", each(list, func(m search.Found) string { return m.Content }), []string{"word 2", "word 1"})
	same(f, "the next page", f.searchFor(search.Query{Workspace: workspace, Text: "word", Before: next, Limit: 2}), []string{"word 0"})
}

func searchEdited(f *fixture) {
	f.message(threadKey(1), said("C1/1", "old words"), passive)
	f.fill()
	f.change(threadKey(1), edited("C1/1", "new words", "2"), passive)
	f.change(threadKey(1), edited("C1/1", "newer words", "3"), passive)
	f.fill()
	same(f, "the old words", f.index("old")+f.index("new"), 0)
	same(f, "the new words", f.search("newer"), []string{"newer words"})
	same(f, "changes that are left", f.count("search_changes"), 0)
}

func searchDeleted(f *fixture) {
	f.message(threadKey(1), said("C1/1", "a secret"), passive)
	f.fill()
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "at once", f.search("secret"), []string{})
	f.fill()
	same(f, "in the index", f.index("secret"), 0)
	f.fill()
	same(f, "in the index later", f.index("secret"), 0)
}

// searchLate moves a message to a lower number, as if a slow transaction had got it before the others.
func searchLate(f *fixture) {
	for n := range 4 {
		f.message(threadKey(1), said(fmt.Sprintf("C1/%d", n), fmt.Sprintf("word %d", n)), passive)
	}
	hidden := f.list(threadKey(1))[1].Row
	f.exec(`UPDATE messages SET row = -row WHERE row = $1`, hidden)
	f.fill()
	f.clock.advance(5 * time.Second)
	f.fill()
	f.exec(`UPDATE messages SET row = -row WHERE row = $1`, -hidden)
	f.clock.advance(5 * time.Second)
	f.fill()
	same(f, "found", f.search("word"), []string{"word 3", "word 2", "word 1", "word 0"})
	f.clock.advance(time.Minute)
	f.fill()
	f.fill()
	var position int64
	f.must(f.engine.ReadOne(f.ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&position}, `SELECT position FROM search_progress`)
		return err
	}))
	same(f, "position", position >= hidden, true)
}

func searchRestart(f *fixture) {
	const many = 450
	for n := range many {
		f.message(threadKey(1+n%3), said(fmt.Sprintf("C1/%d", n), fmt.Sprintf("word number%d", n)), passive)
	}
	f.fill()
	f.clock.advance(time.Minute)
	f.fill()
	next := f.successor("next")
	next.message(threadKey(9), said("C1/last", "the last word"), passive)
	next.fill()
	same(f, "in the index", next.index("word"), many+1)
	same(f, "found", len(next.search("number449")), 1)
}

func searchRemoved(f *fixture) {
	f.message(threadKey(1), said("C1/1", "a secret"), passive)
	f.fill()
	f.exec(`DELETE FROM messages`)
	f.fill()
	same(f, "in the index", f.index("secret"), 0)
}

func searchPeople(f *fixture) {
	by := func(id, sender, name string) {
		m := said(id, "hi")
		m.Metadata.SenderID, m.Metadata.SenderDisplayName = sender, name
		f.message(threadKey(1), m, passive)
		f.clock.advance(time.Second)
	}
	by("C1/1", "slack:U1", "Liv")
	by("C1/2", "slack:U2", "Ash (Ops_%)")
	by("C1/3", "slack:U1", "Olívia Stone")
	f.fill()
	find := func(text string) []string {
		people, err := f.Search.FindPeople(f.ctx, workspace, text, 9)
		f.must(err)
		return each(people, func(p search.Person) string { return p.SenderID + " " + p.Name })
	}
	same(f, "a part of a name", find("olivia"), []string{"slack:U1 Olívia Stone"})
	same(f, "an old name", find("Liv Stone"), []string{})
	same(f, "an id", find("slack:U2"), []string{"slack:U2 Ash (Ops_%)"})
	same(f, "all", find("s"), []string{"slack:U1 Olívia Stone", "slack:U2 Ash (Ops_%)"})
}
