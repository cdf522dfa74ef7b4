package main

import (
	"os"
	"path/filepath"
	"testing"

	"parley/config"
)

// TestFakesTogether writes the files of all three fakes into one configuration with an agent of its own.
func TestFakesTogether(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "parley.yaml")
	if err := os.WriteFile(main, []byte("agents: [{id: helper, kind: echo}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, play := range map[string]player{"slack": playSlack, "discord": playDiscord, "mac": playBlueBubbles} {
		for range 2 { // the second replaces the file of the first
			start(t, play, "--agent", "helper", "--write", filepath.Join(dir, "workspaces", name+".yaml")).quit()
		}
	}
	c, err := config.Load(main)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, w := range c.Workspaces {
		ids[w.ID] = w.Agent == "helper"
	}
	if !ids["fake-slack"] || !ids["fake-discord"] || !ids["fake-imessage"] {
		t.Errorf("the workspaces and their agents are %v", ids)
	}
}

// TestWriteSaysSo names the file that was written, and what to do next: without a parley.yaml, no file of a workspace is read.
func TestWriteSaysSo(t *testing.T) {
	dir := t.TempDir()
	file := workspaceFile{agent: "echo", write: filepath.Join(dir, "workspaces", "fake.yaml")}
	for _, next := range []string{"make the file parley.yaml, which may be empty, and then parley reload, or parley run", "parley reload, or parley run"} {
		said, err := file.save(file.text("fake-slack", "slack", ""))
		if want := "\nwrote " + file.write + "\nnext: " + next + "\n"; err != nil || said != want {
			t.Errorf("%q, %v", said, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "parley.yaml"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWriteKeepsOtherFiles proves that a person's file stays, and that the fake says so.
func TestWriteKeepsOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acme.yaml")
	if err := os.WriteFile(path, []byte("id: acme\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := playSlack(t.Context(), []string{"-listen", "127.0.0.1:0", "--write", path}, nil, t.Output()); err == nil {
		t.Error("another file was overwritten")
	}
	if content, _ := os.ReadFile(path); string(content) != "id: acme\n" {
		t.Errorf("the file is %q", content)
	}
}
