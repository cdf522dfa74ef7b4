package ui_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

var update = flag.Bool("update", false, "write the served scripts and styles")

// built are the served files by their sources. A served file has the modules of its source in it, but for the served ones.
var built = map[string]string{
	"src/conversation.js":     "static/conversation.js",
	"src/conversation.css":    "static/conversation.css",
	"src/chat.js":             "static/chat.js",
	"src/chat.css":            "static/chat.css",
	"../static/src/parley.js": "../static/files/parley.js",
}

// outside keeps the imports of files that are served as well.
var outside = api.Plugin{Name: "outside", Setup: func(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: `^(\./conversation|\.\./sdk/parley)\.js$`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		return api.OnResolveResult{Path: args.Path, External: true}, nil
	})
}}

// minified returns the served form of a source.
func minified(t *testing.T, source string) []byte {
	t.Helper()
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{source}, Bundle: true, Format: api.FormatESModule, Charset: api.CharsetUTF8, Plugins: []api.Plugin{outside},
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
	})
	if len(result.Errors) > 0 {
		t.Fatalf("%s: %+v", source, result.Errors)
	}
	return result.OutputFiles[0].Contents
}

// TestScripts proves that the served files are made from the sources of this commit.
func TestScripts(t *testing.T) {
	for source, served := range built {
		want := minified(t, source)
		if *update {
			if err := os.WriteFile(served, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(served); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not made from %s: run go generate ./adapters/web/ui (%v)", served, source, err)
		}
	}
	if files, err := filepath.Glob("static/*"); err != nil || len(files) != len(built)-1 {
		t.Errorf("%q is served", files)
	}
}
