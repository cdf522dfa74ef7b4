package rig

import (
	"context"
	_ "embed" // for the app
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"parley/adapters/slack/slacktest"
)

//go:embed bolt.cjs
var boltApp string

// NewBolt prepares an app of Bolt, which npm has installed in folder, for the API at a URL. If it has a model's URL, it
// streams that model's answers.
func (b *Bench) NewBolt(name, folder, api, model string) (*Child, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("find node for Bolt: %w", err)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	c, err := b.NewChild(node, name)
	if err != nil {
		return nil, err
	}
	c.Args = []string{"bolt.cjs", folder, c.Address, api, slacktest.Token, SigningSecret, HookPath, model}
	return c, c.write("bolt.cjs", boltApp)
}

// PrintMachine prints the day, the processor and the versions of the programs that are compared.
func (b *Bench) PrintMachine(ctx context.Context, bolt string) error {
	info, _ := os.ReadFile("/proc/cpuinfo") // some systems do not have it
	_, model, _ := strings.Cut(string(info), "model name")
	model, _, _ = strings.Cut(strings.TrimLeft(model, "\t :"), "\n")
	versions := []string{}
	add := func(name string, args ...string) error {
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			return fmt.Errorf("ask %s for its version: %w", name, err)
		}
		versions = append(versions, strings.TrimSpace(string(out)))
		return nil
	}
	if err := add(b.parley, "version"); err != nil {
		return err
	}
	if bolt != "" {
		const ask = `console.log("node " + process.version + ", @slack/bolt " + require(require("path").resolve(process.argv[1], "node_modules/@slack/bolt/package.json")).version)`
		if err := add("node", "-e", ask, bolt); err != nil {
			return err
		}
	}
	b.Printf("%s; %s; %s\n", time.Now().UTC().Format(time.DateOnly), model, strings.Join(versions, "; "))
	return nil
}
