package config

import (
	"encoding"
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest"
)

// scalar is a single value of a file, after the replacement of its references.
type scalar struct {
	text string
	// tag is the type that YAML gives the value, such as "!!str" or "!!int".
	tag string
	// replaced says that part of the value came from outside the file. YAML has not
	// seen that part, so only the setting's type decides how the value is read.
	replaced bool
}

var errNotText = errors.New("must be a text: put the value in quotes")

// read returns the value in the setting's own type. An error has the words of a fault.
func (s scalar) read(t reflect.Type) (any, error) {
	if text, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler); ok {
		if _, isRate := text.(*ingest.Rate); !s.is("!!str") && !(isRate && s.is("!!int")) {
			return nil, errNotText
		}
		err := text.UnmarshalText([]byte(s.text))
		return reflect.ValueOf(text).Elem().Interface(), err
	}
	if t == reflect.TypeFor[time.Duration]() {
		return duration(s.text)
	}
	switch t.Kind() {
	case reflect.String:
		if !s.is("!!str") && !(t == reflect.TypeFor[adapters.Switch]() && s.is("!!bool")) {
			return nil, errNotText
		}
		return s.text, nil
	case reflect.Bool:
		return s.flag()
	case reflect.Int:
		return s.whole()
	case reflect.Int64:
		return size(s.text)
	case reflect.Float64:
		return s.number()
	}
	return nil, errors.New("can't be set in a file")
}

// is reports whether the value may have one of the YAML types.
func (s scalar) is(tags ...string) bool { return s.replaced || slices.Contains(tags, s.tag) }

func (s scalar) flag() (bool, error) {
	if !s.is("!!bool") || s.text != "true" && s.text != "false" {
		return false, errors.New("must be true or false")
	}
	return s.text == "true", nil
}

func (s scalar) whole() (int, error) {
	n, err := strconv.Atoi(s.text)
	if err != nil || !s.is("!!int") {
		return 0, errors.New("must be a whole number")
	}
	return n, nil
}

func (s scalar) number() (float64, error) {
	x, err := strconv.ParseFloat(s.text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || !s.is("!!int", "!!float") {
		return 0, errors.New("must be a number")
	}
	return x, nil
}

var days = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)

// duration reads 500ms, 10s, 1h30m, 8d or 1d12h; a day has 24 hours.
func duration(text string) (time.Duration, error) {
	var whole time.Duration
	rest := text
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // five digits
		whole, rest = time.Duration(n)*24*time.Hour, m[2]
		if rest == "" {
			return whole, nil
		}
	}
	part, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest[:1], "+-") || whole+part < 0 {
		return 0, errors.New("must be a duration, such as 500ms, 10s, 5m or 8d")
	}
	return whole + part, nil
}

var sizes = regexp.MustCompile(`^([0-9]+) ?(|B|kB|MB|GB|KiB|MiB|GiB)$`)

// size reads a number of bytes such as 4194304 or 4MiB.
func size(text string) (int64, error) {
	fault := errors.New("must be a number of bytes, such as 4194304, 512KiB or 20MiB")
	m := sizes.FindStringSubmatch(text)
	if m == nil {
		return 0, fault
	}
	unit := map[string]int64{
		"": 1, "B": 1,
		"kB": 1e3, "MB": 1e6, "GB": 1e9,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	}[m[2]]
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, fault
	}
	return n * unit, nil
}
