package send

import (
	"slices"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
)

// The limits of the rows of a message, of the buttons of a row and of a button's label.
// https://docs.discord.com/developers/components/reference#action-row
// https://docs.discord.com/developers/components/reference#button
const maxRows, maxRow, maxLabel = 5, 5, 80

// ButtonLimits implements adapters.ButtonSender.
func (s *Sender) ButtonLimits() adapters.ButtonLimits {
	return adapters.ButtonLimits{Buttons: maxRows * maxRow, Label: maxLabel, Text: maxText}
}

// components returns the rows of a post's buttons.
func components(buttons []adapters.Button) (rows []discordgo.MessageComponent) {
	for chunk := range slices.Chunk(buttons, maxRow) {
		var row discordgo.ActionsRow
		for _, b := range chunk {
			row.Components = append(row.Components, discordgo.Button{Label: b.Label, CustomID: b.ID, Style: discordgo.SecondaryButton})
		}
		rows = append(rows, row)
	}
	return rows
}
