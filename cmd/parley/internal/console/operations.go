package console

import (
	"net/http"

	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// operation is something that an operator can do on a page.
type operation struct {
	pattern string // a path of http.ServeMux
	// do returns what it did, in words for the operator.
	do func(s *operator.Service, f form) (words string, err error)
	// back returns the page that shows the result; nil for the page of the form.
	back func(f form) string
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

// operate does an operation and shows its result on a page.
func (c *Console) operate(o operation) func(http.ResponseWriter, call) {
	return func(w http.ResponseWriter, r call) {
		f := form{Request: r.Request, by: r.caller}
		var result said
		words, err := "", error(nil)
		if err = f.ParseForm(); err == nil && !r.caller.Role.Has(config.RoleOperator) {
			err = operator.Fail(http.StatusForbidden, "role", "your role is "+string(r.caller.Role)+", and this needs the role operator")
		}
		if err == nil {
			words, err = o.do(c.Service, f)
		}
		if result.Words = words; err != nil {
			_, result.Words = explain(err)
			result.Bad = true
		}
		c.doors.say(r.secret, result)
		http.Redirect(w, r.Request, c.backTo(o, f), http.StatusSeeOther)
	}
}

// backTo returns the address of the page that shows a result.
func (c *Console) backTo(o operation, f form) string {
	if o.back != nil {
		return o.back(f)
	}
	if from := f.PostFormValue("from"); c.pages.has(from) {
		return from
	}
	return "/"
}
