package console

import (
	"cmp"
	"net/http"
	"path"

	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// operation is something that an operator can do on a page.
type operation struct {
	pattern string // a path of http.ServeMux: that of a row, and the name of the operation
	back    string // the page that shows the result; empty for that of the row
	// do returns what it did, in words for the operator.
	do func(s *operator.Service, f form) (words string, err error)
}

// form is a sent form.
type form struct {
	*http.Request
	by operator.Caller
}

// write returns who asks for the change, and why.
func (f form) write() operator.Write {
	return operator.Write{By: f.by.ID, Note: f.PostFormValue("note")}
}

// operate does an operation and shows its result on the page of its row.
func (c *Console) operate(o operation) func(http.ResponseWriter, call) {
	return func(w http.ResponseWriter, r call) {
		f := form{Request: r.Request, by: r.caller}
		words, err := "", f.ParseForm()
		if err == nil && !r.caller.Role.Has(config.RoleOperator) {
			err = needsOperator(r.caller)
		}
		if err == nil {
			words, err = o.do(c.Service, f)
		}
		result := said{Words: words}
		if err != nil {
			result.Bad = true
			_, result.Words = explain(err)
		}
		c.doors.say(r.entry, result)
		http.Redirect(w, r.Request, r.base()+cmp.Or(o.back, path.Dir(f.URL.Path)), http.StatusSeeOther)
	}
}

// needsOperator returns the refusal of a change to a caller who may only read.
func needsOperator(by operator.Caller) error {
	return operator.Fail(http.StatusForbidden, "role", "your role is "+string(by.Role)+", and this needs the role operator")
}
