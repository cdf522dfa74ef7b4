package daemon_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// schema is a JSON schema with the keywords that openapi.yaml uses. known lists them.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // a name or a list of names
	Enum       []any              `json:"enum"`
	AnyOf      []schema           `json:"anyOf"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Additional *bool              `json:"additionalProperties"`
	Items      *schema            `json:"items"`
	Pattern    string             `json:"pattern"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	MinLength  int                `json:"minLength"`
	MaxLength  *int               `json:"maxLength"`

	Default     any    `json:"default"`
	Description string `json:"description"`
}

// faults returns the places at which a value differs from a schema.
func (d *description) faults(s *schema, value any, at string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, at+" "+fmt.Sprintf(format, args...)) }
	if s.Ref != "" {
		name, _ := strings.CutPrefix(s.Ref, "#/components/schemas/")
		return d.faults(d.Components.Schemas[name], value, at)
	}
	if len(s.AnyOf) > 0 && !slices.ContainsFunc(s.AnyOf, func(one schema) bool { return len(d.faults(&one, value, at)) == 0 }) {
		fault("is none of the alternatives: %v", value)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		fault("is %v, not one of %v", value, s.Enum)
	}
	if s.Type != nil && !isOfType(s.Type, value) {
		fault("is %v, not of type %v", value, s.Type)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				fault("has no %s", name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if property := s.Properties[name]; property != nil {
				faults = append(faults, d.faults(property, v[name], at+"."+name)...)
			} else if s.Additional != nil && !*s.Additional {
				fault("has the unknown member %s", name)
			}
		}
	case []any:
		for i := range v {
			if s.Items != nil {
				faults = append(faults, d.faults(s.Items, v[i], fmt.Sprintf("%s[%d]", at, i))...)
			}
		}
	case string:
		if n := utf8.RuneCountInString(v); n < s.MinLength || s.MaxLength != nil && n > *s.MaxLength {
			fault("has %d characters", n)
		}
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v) {
			fault("is %q, not of the form %s", v, s.Pattern)
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			fault("is %v", v)
		}
	}
	return faults
}

// isOfType reports whether a value has a type of JSON, or one of a list.
func isOfType(names, value any) bool {
	if list, ok := names.([]any); ok {
		return slices.ContainsFunc(list, func(name any) bool { return isOfType(name, value) })
	}
	switch v := value.(type) {
	case nil:
		return names == "null"
	case bool:
		return names == "boolean"
	case string:
		return names == "string"
	case float64:
		return names == "number" || names == "integer" && v == float64(int64(v))
	case []any:
		return names == "array"
	}
	return names == "object"
}

// UnmarshalJSON refuses a keyword that the check does not know.
func (s *schema) UnmarshalJSON(raw []byte) error {
	type plain schema
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*plain)(s))
}
