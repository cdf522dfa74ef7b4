// Package emoji translates between emoji and their names, as far as people use them as reactions.
package emoji

import "strings"

// table has an emoji a line, with its name at Slack first, and then further names.
const table = `
👍 +1 thumbsup like yes
👎 -1 thumbsdown dislike no
❤️ heart love
😂 joy laugh haha
🎉 tada party
👀 eyes
✅ white_check_mark done
☑️ ballot_box_with_check
✔️ heavy_check_mark check
❌ x
❎ negative_squared_cross_mark
➕ heavy_plus_sign plus
➖ heavy_minus_sign minus
❓ question
❗ exclamation
‼️ bangbang emphasize
⁉️ interrobang
⚠️ warning
🚫 no_entry_sign
⛔ no_entry
🙏 pray
👏 clap
🙌 raised_hands
👌 ok_hand
✌️ v
🤞 crossed_fingers
🤝 handshake
💪 muscle
👋 wave
✋ hand raised_hand
🖐️ raised_hand_with_fingers_splayed
👆 point_up_2
👇 point_down
👈 point_left
👉 point_right
☝️ point_up
✊ fist
👊 facepunch punch
🫡 saluting_face salute
🙂 slightly_smiling_face
😀 grinning
😃 smiley
😄 smile
😁 grin
😆 laughing
😅 sweat_smile
🤣 rolling_on_the_floor_laughing rofl
😊 blush
😉 wink
😍 heart_eyes
🥰 smiling_face_with_3_hearts
😘 kissing_heart
😎 sunglasses
🤩 star-struck star_struck
🥳 partying_face
🤔 thinking_face thinking
🤨 face_with_raised_eyebrow
😐 neutral_face
😑 expressionless
🙄 face_with_rolling_eyes rolling_eyes
😏 smirk
😮 open_mouth
😯 hushed
😲 astonished
😳 flushed
😱 scream
😢 cry
😭 sob
😞 disappointed
😟 worried
😕 confused
🙁 slightly_frowning_face
☹️ white_frowning_face frowning
😬 grimacing
😴 sleeping
🤯 exploding_head
😡 rage
😠 angry
🤷 shrug
🤦 face_palm facepalm
🤖 robot_face robot
💯 100
🔥 fire
⭐ star
🌟 star2
✨ sparkles
💡 bulb
🚀 rocket
🏁 checkered_flag
🚩 triangular_flag_on_post
🎯 dart
🏆 trophy
🥇 first_place_medal
🎁 gift
🎂 birthday
🍾 champagne
🍻 beers
☕ coffee
🍕 pizza
🐛 bug
🔧 wrench
🔨 hammer
🛠️ hammer_and_wrench
⚙️ gear
🔒 lock
🔓 unlock
🔑 key
🔍 mag
🔔 bell
🔕 no_bell
📌 pushpin
📎 paperclip
📝 memo
📅 date
📆 calendar
📈 chart_with_upwards_trend
📉 chart_with_downwards_trend
📊 bar_chart
📣 mega
📢 loudspeaker
💬 speech_balloon
📧 e-mail email
📦 package
💻 computer
📱 iphone
☎️ phone
⏰ alarm_clock
⏳ hourglass_flowing_sand
⌛ hourglass
🕐 clock1
🔄 arrows_counterclockwise
🔁 repeat
➡️ arrow_right
⬅️ arrow_left
⬆️ arrow_up
⬇️ arrow_down
🟢 large_green_circle
🟡 large_yellow_circle
🔴 red_circle
🔵 large_blue_circle
⚪ white_circle
⚫ black_circle
🆗 ok
🆕 new
🛑 octagonal_sign stop_sign
🚧 construction
🚨 rotating_light
💔 broken_heart
🧡 orange_heart
💛 yellow_heart
💚 green_heart
💙 blue_heart
💜 purple_heart
🖤 black_heart
☀️ sunny
🌧️ rain_cloud
⛈️ thunder_cloud_and_rain
❄️ snowflake
🌈 rainbow
🌍 earth_africa
🌱 seedling
🌹 rose
🐱 cat
🐶 dog
🦄 unicorn_face unicorn
1️⃣ one
2️⃣ two
3️⃣ three
4️⃣ four
5️⃣ five
6️⃣ six
7️⃣ seven
8️⃣ eight
9️⃣ nine
0️⃣ zero
🔟 keycap_ten
`

// variant asks for the picture of a character that may also be text. Some programs leave it out.
const variant = "\uFE0F"

var byName, byPicture = func() (names, pictures map[string][]string) {
	names, pictures = map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		pictures[strings.ReplaceAll(words[0], variant, "")] = words
		for _, name := range words[1:] {
			names[name] = words
		}
	}
	return names, pictures
}()

// bare returns a name without colons.
func bare(given string) string {
	name := strings.TrimSpace(given)
	if len(name) > 2 && name[0] == ':' && name[len(name)-1] == ':' {
		name = name[1 : len(name)-1]
	}
	return name
}

// Name returns Slack's name of an emoji that is given as itself or by a name. A word that is in no table is its
// own name. An unknown picture has none.
func Name(given string) (name string, ok bool) {
	given = bare(given)
	for _, known := range [][]string{byPicture[strings.ReplaceAll(given, variant, "")], byName[given]} {
		if known != nil {
			return known[1], true
		}
	}
	isPart := func(r rune) bool {
		return r == '_' || r == '-' || r == '+' || r == '\'' || r == ':' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z'
	}
	return given, given != "" && strings.TrimFunc(given, isPart) == ""
}

// Picture returns an emoji that is given as itself or by a name; false for an unknown name.
func Picture(given string) (picture string, ok bool) {
	given = bare(given)
	if known := byName[given]; known != nil {
		return known[0], true
	}
	if known := byPicture[strings.ReplaceAll(given, variant, "")]; known != nil {
		return known[0], true
	}
	isText := func(r rune) bool { return r < 0x80 && r != '*' && r != '#' && (r < '0' || r > '9') }
	return given, given != "" && !strings.ContainsFunc(given, isText) && strings.ContainsFunc(given, func(r rune) bool { return r > 0xFF })
}
