package console

import (
	"net/http"
	"strconv"
	"strings"

	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// isOperator reports whether the reader of a page may change something.
func (r request) isOperator() bool { return r.by.Role.Has(config.RoleOperator) }

// row returns the number of a row in the path of a page or of a form.
func row(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, operator.Fail(http.StatusNotFound, "not-found", "there is no such row")
	}
	return id, nil
}

func letters(s *operator.Service, r request) (string, any, error) {
	list, err := s.Dead(r.Context(), r.page())
	return "Dead letters", struct {
		Items []operator.DeadLetter
		Next  neighbours
	}{list.Items, r.beside(list.Next)}, err
}

func letter(s *operator.Service, r request) (string, any, error) {
	id, err := row(r.Request)
	if err != nil {
		return "", nil, err
	}
	one, err := s.DeadLetter(r.Context(), r.by, id, false)
	return "Dead letter " + r.PathValue("id"), struct {
		Letter operator.DeadLetter
		May    bool
	}{one, r.isOperator()}, err
}

// tryLetter plays a letter and stores nothing.
func tryLetter(s *operator.Service, f form) (string, error) {
	id, err := row(f.Request)
	if err != nil {
		return "", err
	}
	result, err := s.TryDead(f.Context(), id)
	if err != nil {
		return "", err
	}
	var words strings.Builder
	words.WriteString("If Parley recorded it now: " + outcome(result))
	for _, m := range result.Assembled {
		words.WriteString("\n\nThe agent gets (" + m.Role + "):\n" + m.Text())
	}
	for _, reply := range result.Replies {
		words.WriteString("\n\nThe answer:\n" + reply.Text)
	}
	return words.String(), nil
}

// outcome returns the result of a letter in words.
func outcome(r operator.Retried) string {
	switch {
	case r.Error != "":
		return r.Disposition + ", " + r.Error
	case r.Trigger == "run":
		return r.Disposition + ", and the agent answers (" + r.Reason + ")"
	case r.Reason != "":
		return r.Disposition + ", and the agent does not answer (" + r.Reason + ")"
	}
	return r.Disposition
}

// settleWait is how long a form waits for the result of a letter, in seconds.
const settleWait = 5

func retryLetter(s *operator.Service, f form) (string, error) {
	id, err := row(f.Request)
	if err != nil {
		return "", err
	}
	result, err := s.RetryDead(f.Context(), f.write(), id, operator.RetryOptions{Wait: settleWait})
	return "Resubmitted: " + outcome(result), err
}

func discardLetter(s *operator.Service, f form) (string, error) {
	id, err := row(f.Request)
	if err != nil {
		return "", err
	}
	_, err = s.DiscardDead(f.Context(), f.write(), id)
	return "Discarded.", err
}
