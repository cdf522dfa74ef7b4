package stream

import (
	"slices"
	"strconv"
	"strings"
)

// Choice is a setting of an agent's conversation that people may choose in its thread, such as the model.
type Choice struct {
	Name    string   `json:"name"`    // mode or model
	Current string   `json:"current"` // the id of the present value
	Values  []Option `json:"values"`
	// Chosen is the id of the value that people have chosen; empty for none.
	Chosen string `json:"-"`
}

// Find returns the value that a person names by its id, its label or its number from 1; false for none.
func (c *Choice) Find(word string) (Option, bool) {
	i := slices.IndexFunc(c.Values, func(o Option) bool { return strings.EqualFold(o.ID, word) || strings.EqualFold(o.Label, word) })
	if n, err := strconv.Atoi(word); i < 0 && err == nil && n >= 1 && n <= len(c.Values) {
		i = n - 1
	}
	if i < 0 {
		return Option{}, false
	}
	return c.Values[i], true
}

// Value returns the label of the value that the next run has; empty if it is unknown.
func (c *Choice) Value() string {
	for _, id := range []string{c.Chosen, c.Current} {
		if i := slices.IndexFunc(c.Values, func(o Option) bool { return o.ID == id }); i >= 0 {
			return c.Values[i].Label
		}
	}
	return ""
}
