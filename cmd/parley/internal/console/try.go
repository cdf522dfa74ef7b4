package console

import (
	"net/http"

	"parley/adapters/web/exchange"
	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// tryView is the data of the page on which an operator tries a message.
type tryView struct {
	May        bool
	Workspaces []config.Workspace
	Trial      operator.Trial
	Tried      *operator.Tried // nil before the form was sent
	Chat       string          // the address of the conversation in a browser; empty for none
}

// try shows the form, and the result of a sent one.
func try(s *operator.Service, r request) (string, any, error) {
	v := tryView{May: r.isOperator(), Workspaces: s.Config().Workspaces, Trial: operator.Trial{
		Workspace: r.FormValue("workspace"), Thread: r.FormValue("thread"), Channel: r.FormValue("channel"), Direct: r.FormValue("direct") != "",
		Sender: r.FormValue("sender"), Name: r.FormValue("name"), Text: r.FormValue("text"), Mentions: r.FormValue("mentions") != "", Ask: r.FormValue("ask") != "",
	}}
	if s.Live != nil && s.Live.Chat != nil {
		v.Chat = s.Live.Chat()
	}
	if r.Method != http.MethodPost {
		v.Trial.Mentions, v.Trial.Ask = true, true
		return "Try", v, nil
	}
	if !v.May {
		return "", nil, needsOperator(r.by)
	}
	tried, err := s.Try(r.Context(), v.Trial)
	v.Tried = &tried
	if err != nil {
		v.Tried = &operator.Tried{Disposition: "refused"}
		if _, v.Tried.Error = explain(err); exchange.IsFault(err) {
			return "", nil, err
		}
	}
	return "Try", v, nil
}
