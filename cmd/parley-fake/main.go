// Parley-fake plays a chat platform in the terminal, so that anybody can try a Parley
// configuration without an account.
//
//	go run ./cmd/parley-fake slack
//	go run ./cmd/parley-fake discord
//	go run ./cmd/parley-fake bluebubbles
//	go run ./cmd/parley-fake bridge
//	go run ./cmd/parley-fake client
//
// It prints the workspace file for a daemon and shows every action of the bot. It sends
// each typed line to the daemon as a message of a person. The client plays one conversation
// over the HTTP API instead, and prints each step.
package main

import (
	"context"
	"io"
	"os"

	"parley/cmd/internal/command"
)

func main() {
	command.Main("parley-fake", func(ctx context.Context, args []string) error {
		return dispatch(ctx, args, os.Stdin, os.Stdout)
	})
}

// dispatch plays what the first argument names until the input or ctx ends.
func dispatch(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	return command.Dispatch(ctx, "usage: parley-fake PLATFORM [FLAGS]; PLATFORM -h lists the flags", []command.Command{
		{Name: "slack", Purpose: "a Slack workspace with one person, over Socket Mode or HTTP", Run: func(ctx context.Context, args []string) error {
			return playSlack(ctx, args, in, out)
		}},
		{Name: "discord", Purpose: "a Discord server with one person", Run: func(ctx context.Context, args []string) error {
			return playDiscord(ctx, args, in, out)
		}},
		{Name: "bluebubbles", Purpose: "an iMessage account behind a BlueBubbles server, with one other person", Run: func(ctx context.Context, args []string) error {
			return playBlueBubbles(ctx, args, in, out)
		}},
		{Name: "bridge", Purpose: "a program that connects a chat which Parley does not know, with one person", Run: func(ctx context.Context, args []string) error {
			return playBridge(ctx, args, in, out)
		}},
		{Name: "client", Purpose: "a client of the HTTP API, which plays a whole conversation", Run: func(ctx context.Context, args []string) error {
			return playClient(ctx, args, out)
		}},
	}, args)
}
