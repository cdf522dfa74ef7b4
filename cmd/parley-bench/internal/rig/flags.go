package rig

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FlagSet declares flags whose values have a lower bound or a list of choices. A value
// outside of them is wrong use.
type FlagSet struct{ *flag.FlagSet }

// Number declares a flag for a whole number of at least least.
func (f *FlagSet) Number(target *int, name string, value, least int, usage string) {
	bound(f, target, name, value, least, usage, strconv.Atoi)
}

// Float declares a flag for a number of at least least.
func (f *FlagSet) Float(target *float64, name string, value, least float64, usage string) {
	bound(f, target, name, value, least, usage, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
}

// Duration declares a flag for a duration of at least least.
func (f *FlagSet) Duration(target *time.Duration, name string, value, least time.Duration, usage string) {
	bound(f, target, name, value, least, usage, time.ParseDuration)
}

// Choice declares a flag whose value must be one of the choices.
func (f *FlagSet) Choice(target *string, name, value string, choices []string, usage string) {
	bound(f, target, name, value, "", fmt.Sprintf("%s: %s", usage, strings.Join(choices, ", ")), func(text string) (string, error) {
		if !slices.Contains(choices, text) && text != value {
			return "", fmt.Errorf("must be one of %v", choices)
		}
		return text, nil
	})
}

// bound declares a flag whose value must be at least least.
func bound[T cmp.Ordered](f *FlagSet, target *T, name string, value, least T, usage string, parse func(string) (T, error)) {
	*target = value
	f.Var(limited[T]{target, least, parse}, name, usage)
}

// limited is the value of a flag.
type limited[T cmp.Ordered] struct {
	target *T // nil only in the zero value, which package flag makes
	least  T
	parse  func(string) (T, error)
}

// Set reads the value from the command line.
func (l limited[T]) Set(text string) (err error) {
	if *l.target, err = l.parse(text); err == nil && *l.target < l.least {
		err = fmt.Errorf("must be at least %v", l.least)
	}
	return err
}

// String returns the value.
func (l limited[T]) String() string {
	if l.target == nil {
		return ""
	}
	return fmt.Sprint(*l.target)
}
