package bridge

import (
	"context"
	"errors"
	"net/http"

	"parley/adapters"
	"parley/adapters/httpcall"
)

// typeCheck is the type of a request that asks whether the program takes requests.
const typeCheck = "check"

var _ adapters.Checker = (*Adapter)(nil)

// Check asks the program whether it takes requests, and knows their signature.
func (a *Adapter) Check(ctx context.Context, _ adapters.Wants) ([]adapters.Finding, error) {
	_, err := a.call(ctx, outgoing{Type: typeCheck})
	status := statusOf(err)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return []adapters.Finding{{Key: "deliver.secret", Words: "the program refuses our signature: give both the same secret, and compare their clocks", Fault: true}}, nil
	case status/100 == 3, status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return []adapters.Finding{{Key: "deliver.url", Words: "is not the address at which the program takes requests: " + err.Error(), Fault: true}}, nil
	case status/100 == 4 && status != http.StatusTooManyRequests:
		return []adapters.Finding{{Key: "deliver.url", Words: "the program refuses a request of a type that it does not know: it answers those with 200"}}, nil
	}
	return nil, err
}

// statusOf returns the status of the program's refusal; 0 for another error.
func statusOf(err error) int {
	if refusal, ok := errors.AsType[*httpcall.Refusal](err); ok {
		return refusal.Status
	}
	return 0
}
