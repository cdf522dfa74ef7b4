package console

import (
	"fmt"
	"net/url"

	"parley/cmd/parley/internal/operator"
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
		data.Items = append(data.Items, person{p, []act{newAct(r.isOperator(), "forget", "/people/"+url.PathEscape(p.SenderID)+"/forget", "Forget",
			"What this person wrote, the answers to it, quotations of it and the name leave the store for good, in all workspaces. On the platform nothing changes.")}})
	}
	data.Next = r.beside(list.Next)
	return "People", data, err
}

func forgetPerson(s *operator.Service, f form) (string, error) {
	made, err := s.ForgetPerson(f.Context(), f.write(), f.PathValue("person"))
	return fmt.Sprintf("%s is forgotten: %d messages, %d answers and %d files are empty.", made.SenderID, made.Messages, made.Answers, made.Files), err
}
