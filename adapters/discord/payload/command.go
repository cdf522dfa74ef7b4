package payload

import (
	"slices"

	"github.com/bwmarrin/discordgo"
)

const (
	// CommandPrefix and actionPrefix begin the external ids of interactions, because an
	// interaction is no message.
	CommandPrefix, actionPrefix = "command-", "action-"
	// askCommand is the name of the slash command, and askMessage that of the message command.
	askCommand, askMessage = "ask", "Ask about this"
)

// Commands are the commands of the bot. Only the first two ask the agent.
var Commands = []discordgo.ApplicationCommand{
	{Type: discordgo.ChatApplicationCommand, Name: askCommand, Description: "Ask the agent", Options: []*discordgo.ApplicationCommandOption{
		{Type: discordgo.ApplicationCommandOptionString, Name: "question", Description: "Your question", Required: true},
	}},
	{Type: discordgo.MessageApplicationCommand, Name: askMessage},
	{Type: discordgo.ChatApplicationCommand, Name: "new", Description: "Begin a new context here"},
	{Type: discordgo.ChatApplicationCommand, Name: "schedules", Description: "List what the agent has scheduled here"},
	{Type: discordgo.ChatApplicationCommand, Name: "unschedule", Description: "Cancel what the agent has scheduled here", Options: []*discordgo.ApplicationCommandOption{
		{Type: discordgo.ApplicationCommandOptionString, Name: "id", Description: "The id, as /schedules shows it", Required: true},
	}},
	{Type: discordgo.ChatApplicationCommand, Name: "status", Description: "Tell what the agent is doing here"},
	{Type: discordgo.ChatApplicationCommand, Name: "stop", Description: "Stop what the agent is doing here"},
}

// isOurs reports whether the bot registers such a command. Another program may have registered
// others for the same application.
func isOurs(kind discordgo.ApplicationCommandType, name string) bool {
	return slices.ContainsFunc(Commands, func(c discordgo.ApplicationCommand) bool { return c.Type == kind && c.Name == name })
}
