package console

import (
	"slices"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/listing"
)

func deliveries(s *operator.Service, r request) (string, any, error) {
	list, err := s.Deliveries(r.Context(), r.by, r.query("state"), r.page())
	return "Deliveries", struct {
		Items  []operator.Delivery
		States []string
		State  string
		Next   neighbours
	}{list.Items, listing.DeliveryStates(), r.query("state"), r.beside(list.Next)}, err
}

func delivery(s *operator.Service, r request) (string, any, error) {
	id, err := row(r.Request)
	if err != nil {
		return "", nil, err
	}
	one, err := s.Delivery(r.Context(), r.by, id)
	return "Delivery " + r.PathValue("id"), struct {
		Delivery  operator.Delivery
		Open, May bool
	}{one, slices.Contains([]string{"unknown", "failed"}, one.State), r.isOperator()}, err
}

func resend(s *operator.Service, f form) (string, error) {
	id, err := row(f.Request)
	if err != nil {
		return "", err
	}
	one, err := s.ResendDelivery(f.Context(), f.write(), id, false)
	return "The delivery is " + one.State + ".", err
}

func confirm(s *operator.Service, f form) (string, error) {
	id, err := row(f.Request)
	if err != nil {
		return "", err
	}
	_, err = s.ConfirmDelivery(f.Context(), f.write(), id, f.PostFormValue("post"))
	return "The delivery counts as sent.", err
}

func drop(s *operator.Service, f form) (string, error) {
	id, err := row(f.Request)
	if err != nil {
		return "", err
	}
	_, err = s.DropDelivery(f.Context(), f.write(), id)
	return "The delivery is given up.", err
}
