package jsonobject_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

func parse(t *testing.T, body string) jsonobject.Fields {
	t.Helper()
	f, err := jsonobject.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFields(t *testing.T) {
	f := parse(t, ` {"text":"a\u0000b","n":-7,"yes":true,"none":null,"child":{"text":"c"},"list":[{"n":1},null,{"n":3}]}`)
	if got := f.Text("text"); got != "a\uFFFDb" {
		t.Errorf("the text is %q", got)
	}
	if got := f.ShortText("text", 5); got != "a\uFFFDb" {
		t.Errorf("the short text is %q", got)
	}
	if f.Number("n") != -7 || !f.Flag("yes") || string(f.Raw("n")) != "-7" {
		t.Errorf("the number is %d, the flag %t, the raw number %s", f.Number("n"), f.Flag("yes"), f.Raw("n"))
	}
	if child, ok := f.RequiredChild("child"); !ok || child.Text("text") != "c" {
		t.Errorf("the child has the text %q, %t", child.Text("text"), ok)
	}
	var numbers []int64
	for _, child := range f.Children("list") {
		numbers = append(numbers, child.Number("n"))
	}
	if diff := cmp.Diff([]int64{1, 0, 3}, numbers); diff != "" {
		t.Errorf("the numbers of the list: %s", diff)
	}
	if err := f.Err(); err != nil {
		t.Errorf("faults of a valid payload: %v", err)
	}
}

// TestMissingFields checks that an absent member, a member of another case and null are missing,
// and have no fault.
func TestMissingFields(t *testing.T) {
	f := parse(t, `{"none":null,"KEY":1}`)
	for _, key := range []string{"none", "key", "absent"} {
		child, ok := f.Child(key)
		if ok || child.Has("x") || f.Has(key) || f.Raw(key) != nil || f.Children(key) != nil {
			t.Errorf("%s is present", key)
		}
		if f.Text(key) != "" || f.ShortText(key, 1) != "" || f.Number(key) != 0 || f.Flag(key) {
			t.Errorf("%s has a value", key)
		}
	}
	if err := f.Err(); err != nil {
		t.Errorf("faults of missing members: %v", err)
	}
}

// TestFieldFaults checks that all faults of a payload are recorded in order, by path, and that a
// member with a fault has the zero value.
func TestFieldFaults(t *testing.T) {
	f := parse(t, `{"text":1,"n":"one","yes":"no","long":"é","child":[],"list":{},"deep":{"list":[{},{"text":[]}]}}`)
	if f.Text("text") != "" || f.Number("n") != 0 || f.Flag("yes") || f.ShortText("long", 1) != "" {
		t.Error("a member with a fault has a value")
	}
	if _, ok := f.Child("child"); ok || f.Children("list") != nil {
		t.Error("a member with a fault has children")
	}
	f.RequiredChild("absent")
	deep, _ := f.RequiredChild("deep")
	deep.Children("list")[1].Text("text")
	deep.Fault("id", "must be an id")
	const want = "text: must be a string; n: must be a number; yes: must be true or false; " +
		"long: is 2 bytes long, must be at most 1; child: must be an object; list: must be a list of objects; " +
		"absent: is required: an object; deep.list[1].text: must be a string; deep.id: must be an id"
	if err := f.Err(); err == nil || err.Error() != want {
		t.Errorf("the faults are %v, want %s", err, want)
	}
}

// TestNumbers reads numbers with a fraction and numbers that are given as a text.
func TestNumbers(t *testing.T) {
	for raw, want := range map[string]int64{
		"7": 7, "-7.9": -7, "1.79e3": 1790, `"7"`: 7, `"1790000000000.5"`: 1790000000000, `" 7 "`: 7,
		"9223372036854775807": 9223372036854775807, `"9223372036854775807"`: 9223372036854775807,
	} {
		f := parse(t, `{"n":`+raw+`}`)
		if got := f.Number("n"); got != want || f.Err() != nil {
			t.Errorf("%s: read as %d, %v", raw, got, f.Err())
		}
	}
	for _, raw := range []string{`""`, `"seven"`, `"NaN"`, `"0x10"`, `"7 8"`, `"null"`, "true", "[]", "{}", "1e300", "-1e300", "9223372036854775808"} {
		f := parse(t, `{"n":`+raw+`}`)
		if got := f.Number("n"); got != 0 || f.Err() == nil {
			t.Errorf("%s: read as %d, %v", raw, got, f.Err())
		}
	}
}

// TestOptionalMembers checks that the faults of optional members, at any depth, are no faults of the
// payload, and that other members keep theirs.
func TestOptionalMembers(t *testing.T) {
	f := parse(t, `{"text":1,"child":{"n":[],"list":[{"yes":1}]},"list":{}}`)
	o := f.Optional()
	child, ok := o.Child("child")
	if !ok || o.Text("text") != "" || child.Number("n") != 0 || child.Children("list")[0].Flag("yes") || o.Children("list") != nil {
		t.Error("an optional member with a fault has a value")
	}
	if err := f.Err(); err != nil {
		t.Errorf("optional members have faults: %v", err)
	}
	f.Text("text")
	if err := f.Err(); err == nil || err.Error() != "text: must be a string" {
		t.Errorf("the faults of other members are %v", err)
	}
}

// TestFaultsAreBounded reads a list of many faulty objects.
func TestFaultsAreBounded(t *testing.T) {
	f := parse(t, `{"list":[`+strings.Repeat(`{"text":1},`, 1000)+`{}]}`)
	for _, child := range f.Children("list") {
		child.Text("text")
	}
	var faults event.FieldErrors
	if !errors.As(f.Err(), &faults) || len(faults) != event.MaxFaults {
		t.Errorf("%d faults", len(faults))
	}
}

func TestParseRefuses(t *testing.T) {
	for body, want := range map[string]string{
		"":      "body: must be a JSON object",
		" null": "body: must be a JSON object",
		"[{}]":  "body: must be a JSON object",
		"{":     "body: must be a JSON object: unexpected end of JSON input",
		"{} {}": "body: must be a JSON object: invalid character '{' after top-level value",
	} {
		if _, err := jsonobject.Parse([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", body, err, want)
		}
	}
}
