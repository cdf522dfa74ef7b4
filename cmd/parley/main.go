// Command parley lets an agent take part in the chats where people already are.
package main

import "parley/cmd/parley/internal/commands"

func main() { commands.Main() }
