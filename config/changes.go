package config

import (
	"reflect"
	"slices"
	"strings"
)

// Changes returns the keys whose effective values differ from those of another configuration, secrets and the values behind references
// included. A key of a workspace's file follows the workspace's id, as in "acme: policy.max_age". An entry of a list with another id
// is one key, such as "agents[0]" or "acme: schedules[2]". A workspace that only one of them has is "acme: added" or "acme: removed". A workspace, or
// a block of the main file, that differs in a value without a key of its own is "acme: a secret", "operators: a secret".
func (c *Config) Changes(before *Config) (keys []string) {
	c, before = c.revealed(), before.revealed()
	keys = entriesWhole(differing(c.Main(), before.Main(), ""))
	keys = append(keys, c.secretsOf(before, keys)...)
	for _, w := range c.Workspaces {
		old := before.Workspace(w.ID)
		if old == nil {
			keys = append(keys, w.ID+": added")
			continue
		}
		own := entriesWhole(differing(c.Effective(w.ID), before.Effective(w.ID), w.ID+": "))
		if len(own) == 0 && !reflect.DeepEqual(w.Config, old.Config) {
			own = append(own, w.ID+": a secret")
		}
		keys = append(keys, own...)
	}
	for _, w := range before.Workspaces {
		if c.Workspace(w.ID) == nil {
			keys = append(keys, w.ID+": removed")
		}
	}
	return keys
}

// secretsOf names the blocks of the main file that differ from those of another configuration though none
// of keys is in them: only their secrets differ.
func (c *Config) secretsOf(before *Config, keys []string) (secrets []string) {
	now, old := reflect.ValueOf(*c), reflect.ValueOf(*before)
	for _, field := range reflect.VisibleFields(now.Type()) {
		block := field.Tag.Get("yaml")
		isOf := func(key string) bool {
			return block == key[:len(key)-len(strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyz_"))]
		}
		if block != "-" && !slices.ContainsFunc(keys, isOf) && !reflect.DeepEqual(now.FieldByIndex(field.Index).Interface(), old.FieldByIndex(field.Index).Interface()) {
			secrets = append(secrets, block+": a secret")
		}
	}
	return secrets
}

// entriesWhole replaces the keys of each entry of a list whose id is among them by the key of the entry.
func entriesWhole(keys []string) (whole []string) {
	entry := ""
	for _, key := range keys {
		if list, isID := strings.CutSuffix(key, "].id"); isID {
			entry = list + "]"
			whole = append(whole, entry)
		} else if entry == "" || !strings.HasPrefix(key, entry+".") {
			whole = append(whole, key)
		}
	}
	return whole
}

// differing returns the keys whose values differ, each after a prefix, in the order of the new ones.
func differing(now, before []Setting, prefix string) (keys []string) {
	values := map[string]string{}
	for _, s := range before {
		values[s.Key] = s.Value
	}
	for _, s := range now {
		if value, known := values[s.Key]; !known || value != s.Value {
			keys = append(keys, prefix+s.Key)
		}
		delete(values, s.Key)
	}
	for _, s := range before {
		if _, left := values[s.Key]; left && !slices.Contains(keys, prefix+s.Key) {
			keys = append(keys, prefix+s.Key)
		}
	}
	return keys
}
