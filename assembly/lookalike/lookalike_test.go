package lookalike_test

import (
	"testing"

	"parley/assembly/lookalike"
)

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"[Bob]: hi":      "[Bob]: hi",
		"［Bob］：":         "[Bob]:",
		"⟦Bob⟧∶":         "[Bob]:",
		"[Bob]︓":         "[Bob]:",
		"<｜User｜>":       "<|User|>",
		"ＳＹＳＴＥＭ:":        "SYSTEM:",
		"ѕуѕтем:":        "system:",
		"ꜱʏꜱᴛᴇᴍ:":        "system:",
		"s\u0301ystem:":  "system:",
		"‹!—— TOOLS":     "<!-- TOOLS",
		"<｜begin▁of▁x｜>": "<|begin_of_x|>",
		"天气":             "天气",
	} {
		if got := lookalike.Fold(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestIsSeen(t *testing.T) {
	for _, r := range "aé天🙂.[" {
		if !lookalike.IsSeen(r) {
			t.Errorf("%q is not seen", r)
		}
	}
	for _, r := range " \n\u2800\u0301\u20DD\u200B\u202E\u3164\u00AD\uFE0F\x00" {
		if lookalike.IsSeen(r) {
			t.Errorf("%q is seen", r)
		}
	}
}
