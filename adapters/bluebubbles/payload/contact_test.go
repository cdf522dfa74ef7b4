package payload

import "testing"

// TestContactsOfNumbers checks that a number in the address book may lack the country code or have
// separators, and that no other number is taken for it.
func TestContactsOfNumbers(t *testing.T) {
	for number, want := range map[string]bool{
		"+1 (555) 555-0142": true, "555 555 0142": true, "05555550142": true,
		"550142": false, "+49 555 555 0142": false, "5555550143": false, "": false,
	} {
		c := Contact{PhoneNumbers: []contactAddress{{number}}, Emails: []contactAddress{{"Nora@Example.org"}}}
		if c.Has("+15555550142") != want {
			t.Errorf("%q: %v", number, !want)
		}
		if !c.Has("nora@example.org") || c.Has("ora@example.org") {
			t.Error("an e-mail address")
		}
	}
}
