package slack

import (
	"net/http"
	"slices"
)

// Needed returns all scopes that the adapter may need, and their events.
func Needed() (names, events []string) {
	for _, s := range scopes {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
		events = append(events, s.events...)
	}
	return names, events
}

// GrantedScopes reads the values of the scopes header.
func GrantedScopes(values []string) ([]string, bool) {
	header := http.Header{}
	for _, v := range values {
		header.Add("X-OAuth-Scopes", v)
	}
	return grantedScopes(header)
}
