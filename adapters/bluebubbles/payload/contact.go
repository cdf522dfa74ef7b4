package payload

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Contact is an entry of the server's address book.
type Contact struct {
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

// Name returns the name that the contact is displayed with; empty for none.
func (c Contact) Name() string {
	both := strings.TrimSpace(c.FirstName) + " " + strings.TrimSpace(c.LastName)
	return cmp.Or(strings.TrimSpace(c.DisplayName), strings.TrimSpace(both), strings.TrimSpace(c.Nickname))
}

// Has reports whether the contact has an address. A number in the address book may lack the
// country code or have separators.
func (c Contact) Has(address string) bool {
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
