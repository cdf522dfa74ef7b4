package send

import (
	"slices"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// The limits of an actions block and of a button's label.
// https://docs.slack.dev/reference/block-kit/blocks/actions-block
// https://docs.slack.dev/reference/block-kit/block-elements/button-element
const maxButtons, maxLabel = 25, 75

// ButtonLimits implements adapters.ButtonSender.
func (s *Sender) ButtonLimits() adapters.ButtonLimits {
	return adapters.ButtonLimits{Buttons: maxButtons, Label: maxLabel, Text: postLimit}
}

// actions returns the blocks with the buttons of a post; none without buttons.
func actions(buttons []adapters.Button) (list []slack.Block) {
	for some := range slices.Chunk(buttons, maxButtons) {
		block := slack.NewActionBlock("")
		for _, b := range some {
			block.Elements.ElementSet = append(block.Elements.ElementSet,
				slack.NewButtonBlockElement(b.ID, b.ID, slack.NewTextBlockObject(slack.PlainTextType, b.Label, false, false)))
		}
		list = append(list, block)
	}
	return list
}
