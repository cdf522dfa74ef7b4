package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMain lets the test binary be the floor, as the tool's own binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestAgainstTheDaemon loads and kills the real binary, a little.
func TestAgainstTheDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts the daemon")
	}
	parley, err := binary(t.Context(), "", filepath.Join(t.TempDir(), "parley"))
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"load":  {"load", "-events=60", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20"},
		"open":  {"load", "-events=30", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20", "-rate=150", "-only=parley"},
		"model": {"kill", "-profile=model", "-kills=2", "-events=60", "-rate=40", "-after=500ms", "-timeout=500ms", "-seed=1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := dispatch(t.Context(), append(args, "-parley="+parley, "-dir="+t.TempDir()), &out); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if !regexp.MustCompile(`parley +\d+ messages/s|[1-9]\d* acknowledged .*0 lost, 0 doubled`).MatchString(out.String()) {
				t.Errorf("it says:\n%s", &out)
			}
		})
	}
}

func TestWrongUseIsToldApart(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"load", "-nonsense"}, {"load", "extra"}, {"load", "-threads=1"},
		{"load", "-only=nobody"}, {"kill", "-profile=nobody"}, {"kill", "-threads=1"}, {"freeze", "-rate=0"}, {"scale", "-threads=-1"}} {
		var wrong usageError
		if err := dispatch(t.Context(), args, &strings.Builder{}); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
