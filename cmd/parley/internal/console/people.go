package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/strangers"
)

// person is a person who has written, with the operation on what the person wrote.
type person struct {
	operator.Person
	Acts []act
}

func peoplePage(s *operator.Service, r request) (string, any, error) {
	var data struct {
		Text   string
		Hidden bool // the caller may see no people
		Items  []person
		Next   neighbours
	}
	if data.Text = r.query("q"); !r.by.ReadsAll() {
		data.Hidden = true
		return "People", data, nil
	}
	page := r.page()
	page.Limit = 30 // each row has a form
	list, err := s.People(r.Context(), data.Text, page)
	for _, p := range list.Items {
		acts := []act{newAct(r.isOperator(), "forget", "/people/"+url.PathEscape(p.SenderID)+"/forget", "Forget",
			"What this person wrote, the answers to it, quotations of it and the name leave the store for good, in all workspaces. On the platform nothing changes.")}
		data.Items = append(data.Items, person{p, append(acts, strangerActs(r.isOperator(), p)...)})
	}
	data.Next = r.beside(list.Next)
	return "People", data, err
}

func forgetPerson(s *operator.Service, f form) (string, error) {
	made, err := s.ForgetPerson(f.Context(), f.write(), f.PathValue("person"))
	return fmt.Sprintf("%s is forgotten: %d messages, %d answers and %d files are empty.", made.SenderID, made.Messages, made.Answers, made.Files), err
}

// strangerActs returns the decisions that may follow on what was decided about a stranger; none about a person who has never asked.
func strangerActs(may bool, p operator.Person) (acts []act) {
	in := func(states ...strangers.State) bool {
		return slices.ContainsFunc(p.Access, func(a operator.Access) bool { return slices.Contains(states, a.State) })
	}
	at := "/people/" + url.PathEscape(p.SenderID)
	if in(strangers.Asked, strangers.Once, strangers.No, strangers.Expired) {
		acts = append(acts, newAct(may, "admit", at+"/admit", "Admit", "This person is admitted always, where the policy asks about strangers. A message that waits is answered."))
	}
	if in(strangers.Asked, strangers.Once, strangers.Always, strangers.Expired) {
		acts = append(acts, newAct(may, "refuse", at+"/refuse", "Refuse", "Messages of this person are ignored, and ask nobody."))
	}
	if in(strangers.Once, strangers.Always, strangers.No, strangers.Expired) {
		acts = append(acts, newAct(may, "ask", at+"/ask", "Ask again", "What was decided is taken back: the next message asks the approvers."))
	}
	return acts
}

// decidePerson returns the operation that decides about a stranger.
func decidePerson(state strangers.State, words string) func(s *operator.Service, f form) (string, error) {
	return func(s *operator.Service, f form) (string, error) {
		made, err := s.DecidePerson(f.Context(), f.write(), f.PathValue("person"), "", state)
		return fmt.Sprintf("%s %s in %s.", made.SenderID, words, strings.Join(made.Workspaces, ", ")), err
	}
}
