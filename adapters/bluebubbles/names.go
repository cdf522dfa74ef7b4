package bluebubbles

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"parley/adapters"
)

// contact is an entry of the server's address book.
type contact struct {
	DisplayName  string           `json:"displayName"`
	FirstName    string           `json:"firstName"`
	LastName     string           `json:"lastName"`
	Nickname     string           `json:"nickname"`
	PhoneNumbers []contactAddress `json:"phoneNumbers"`
	Emails       []contactAddress `json:"emails"`
}

type contactAddress struct {
	Address string `json:"address"`
}

// LookupUser returns the name of an address in the server's contacts. The server's query finds only
// telephone numbers, so an e-mail address is looked up among all contacts.
func (a *Adapter) LookupUser(ctx context.Context, address string) (adapters.User, error) {
	var found []contact
	method, path, body := http.MethodPost, "contact/query", any(map[string]any{"addresses": []string{address}})
	if strings.ContainsRune(address, '@') {
		method, path, body = http.MethodGet, "contact", nil
	}
	if err := a.call(ctx, method, path, nil, body, &found); err != nil {
		return adapters.User{}, err
	}
	for _, c := range found {
		if name := c.name(); c.has(address) && name != "" {
			return adapters.User{DisplayName: name}, nil
		}
	}
	return adapters.User{}, adapters.ErrNoName
}

func (c contact) name() string {
	both := strings.TrimSpace(c.FirstName) + " " + strings.TrimSpace(c.LastName)
	return cmp.Or(strings.TrimSpace(c.DisplayName), strings.TrimSpace(both), strings.TrimSpace(c.Nickname))
}

// has reports whether the contact has an address. A number in the address book may lack the
// country code or have separators.
func (c contact) has(address string) bool {
	if strings.ContainsRune(address, '@') {
		return slices.ContainsFunc(c.Emails, func(e contactAddress) bool { return strings.EqualFold(e.Address, address) })
	}
	wanted := digits(address)
	return slices.ContainsFunc(c.PhoneNumbers, func(n contactAddress) bool {
		has := strings.TrimLeft(digits(n.Address), "0")
		return has == wanted || len(has) > shortCode && strings.HasSuffix(wanted, has)
	})
}

func digits(address string) string { return nonDigits.ReplaceAllString(address, "") }

var nonDigits = regexp.MustCompile(`[^0-9]`)
