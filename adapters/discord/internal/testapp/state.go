package testapp

import (
	"fmt"
	"strings"
	"testing"

	"parley/adapters"
)

// Fill stores a list of as many entries as a value can hold. An entry is a format with a number.
func Fill(t *testing.T, state adapters.State, name, entry string) {
	t.Helper()
	list := "["
	for i := 0; len(list) < 64<<10-len(entry)-1; i++ {
		list += fmt.Sprintf(entry, i) + ","
	}
	if err := state.Put(t.Context(), name, strings.TrimSuffix(list, ",")+"]"); err != nil {
		t.Fatal(err)
	}
}

// Newest returns the end of a stored list.
func Newest(t *testing.T, state adapters.State, name string) string {
	t.Helper()
	value, err := state.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return value[max(0, len(value)-500):]
}
