// Parley-bench measures a Parley daemon under load and tests its promises under
// faults: kills, broken connections, attacks, a Slack that fails.
//
// The daemon runs as a child process on a loopback port. Several daemons can share
// one PostgreSQL; then the tool spreads Slack's calls over all of them. The tool plays
// Slack: it signs and posts events as Slack does, and serves the Web API that receives
// the replies. If a scenario needs an agent other than echo, the tool also serves the
// model behind an OpenAI-compatible API. A ledger records every message that the
// daemon acknowledged, and compares it with the replies. The floor, a program that does
// the least work for the same promises, runs beside the daemon as a yardstick: absolute
// figures change with the machine, the ratio does not.
//
// The command is the list of scenarios. Of the packages below it, each imports only those
// before it: figure (times, CPU and memory in words), ledger (what was promised), rig (the
// programs under test and their store), floor, trial (fakes, load and verdict), and one
// package of scenarios for each platform that the tool plays.
package main

import (
	"context"
	"io"
	"os"

	"parley/cmd/internal/command"
	"parley/cmd/parley-bench/floor"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/scenario/bluebubbles"
	"parley/cmd/parley-bench/internal/scenario/discord"
	"parley/cmd/parley-bench/internal/scenario/slack"
	"parley/cmd/parley-bench/internal/scenario/web"
)

func scenarios() []rig.Subcommand {
	return []rig.Subcommand{
		{Name: "load", Purpose: "durable messages per second, acknowledgement times, CPU and memory, beside the floor", Daemons: 1, Scenario: &slack.Load{}},
		{Name: "peers", Purpose: "load beside the floor and beside an app of Bolt, Slack's own framework", Daemons: 1, Scenario: &slack.Peers{}},
		{Name: "kill", Purpose: "kill -9 under load, with faults of Slack or a slow model", Daemons: 1, Scenario: &slack.Kill{}},
		{Name: "cluster", Purpose: "several daemons on one PostgreSQL: killed, suspended, disconnected from the database", Daemons: 4, Scenario: &slack.Cluster{}},
		{Name: "sockets", Purpose: "Socket Mode with forced disconnects under load", Daemons: 1, Scenario: &slack.Sockets{}},
		{Name: "gateway", Purpose: "Discord's gateway with dropped connections, restarts and a burst", Daemons: 1, Scenario: &discord.Gateway{}},
		{Name: "edits", Purpose: "kill -9 while an answer stands half in Discord, with faults of its API", Daemons: 0, Scenario: &discord.Edits{}},
		{Name: "imessage", Purpose: "BlueBubbles with lost, doubled and week-old webhooks, sends without an answer, and kills during sends", Daemons: 1, Scenario: &bluebubbles.IMessage{}},
		{Name: "restarts", Purpose: "messages during the daemon's downtime, and their answers after each start", Daemons: 0, Scenario: &slack.Restarts{}},
		{Name: "agents", Purpose: "the first token, and kills, for each kind of agent", Daemons: 1, Scenario: &slack.Agents{}},
		{Name: "scale", Purpose: "memory and start-up time with a large store", Daemons: 0, Scenario: &slack.Scale{}},
		{Name: "doors", Purpose: "attacks of unknown callers beside Slack's messages", Daemons: 0, Scenario: &slack.Doors{}},
		{Name: "follow", Purpose: "many clients that follow runs on several daemons, one of which is killed", Daemons: 2, Scenario: &web.Follow{}},
	}
}

func main() {
	command.Main("parley-bench", func(ctx context.Context, args []string) error { return dispatch(ctx, args, os.Stdout) })
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	all := []command.Command{{Name: "floor", Purpose: "the yardstick itself, as load starts it", Run: floor.Run}}
	for _, s := range scenarios() {
		all = append(all, command.Command{Name: s.Name, Purpose: s.Purpose, Run: func(ctx context.Context, args []string) error {
			return s.Start(ctx, args, out)
		}})
	}
	return command.Dispatch(ctx, "usage: parley-bench COMMAND [FLAGS]; COMMAND -h lists the flags", all, args)
}
