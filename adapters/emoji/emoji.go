// Package emoji translates between emoji and their names, as far as people use them as reactions.
package emoji

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// table has an emoji a line, with its name at Slack first, and then further names. Slack has the short names of iamcal's emoji-data
// (https://github.com/iamcal/emoji-data). The lines up to Unicode 13 are from the copy of them in the Go module
// github.com/mattermost/mattermost/server/public v0.1.12; the later ones have the names of Unicode.
//
//go:embed names.txt
var table string

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

// tones are the skin tones. Slack numbers them from 2, as Fitzpatrick's scale does.
const tones = "🏻🏼🏽🏾🏿"

// toneName separates the name of an emoji from that of a skin tone at Slack.
const toneName = "::skin-tone-"

// withoutTone returns a picture without its skin tones, and those as the end of Slack's name, such as "::skin-tone-4". A picture of two
// people has two if they differ.
func withoutTone(picture string) (plain, ending string) {
	if strings.ContainsRune(tones, []rune(picture + " ")[0]) { // a tone alone is a picture too
		return picture, ""
	}
	var found []string
	plain = strings.Map(func(r rune) rune {
		i := strings.IndexRune(tones, r)
		if i < 0 {
			return r
		}
		if tone := strconv.Itoa(i/len("🏻") + 2); !slices.Contains(found, tone) {
			found = append(found, tone)
		}
		return -1
	}, picture)
	if len(found) == 0 {
		return plain, ""
	}
	return plain, toneName + strings.Join(found, "-")
}

// Name returns Slack's name of an emoji that is given as itself or by a name. A word that is in no table is its
// own name. An unknown picture has none.
func Name(given string) (name string, ok bool) {
	given = bare(given)
	if known := byPicture[strings.ReplaceAll(given, variant, "")]; known != nil {
		return known[1], true
	}
	if plain, ending := withoutTone(given); ending != "" {
		known := byPicture[strings.ReplaceAll(plain, variant, "")]
		if known == nil {
			return "", false
		}
		return known[1] + ending, true
	}
	if named, tone, toned := strings.Cut(given, toneName); byName[named] != nil {
		if given = byName[named][1]; toned {
			given += toneName + tone
		}
	}
	isPart := func(r rune) bool {
		return r == '_' || r == '-' || r == '+' || r == '\'' || r == ':' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z'
	}
	return given, given != "" && strings.TrimFunc(given, isPart) == ""
}

// Picture returns one emoji that is given as itself or by a name; false for an unknown name.
func Picture(given string) (picture string, ok bool) {
	given = bare(given)
	named, tone, toned := strings.Cut(given, toneName)
	if known := byName[named]; known != nil {
		return withTone(known[0], tone, toned)
	}
	if known := byPicture[strings.ReplaceAll(given, variant, "")]; known != nil {
		return known[0], true
	}
	isText := func(r rune) bool { return r < 0x80 && r != '*' && r != '#' && (r < '0' || r > '9') }
	return given, given != "" && !strings.ContainsFunc(given, isText) && strings.ContainsFunc(given, func(r rune) bool { return r > 0xFF }) &&
		uniseg.GraphemeClusterCount(given) == 1
}

// withTone returns a picture with a skin tone, which Slack's number names, behind its first character; false for another number.
func withTone(picture, tone string, toned bool) (string, bool) {
	if !toned {
		return picture, true
	}
	number, err := strconv.Atoi(tone)
	if err != nil || number < 2 || number > 6 {
		return "", false
	}
	characters := []rune(picture)
	first, rest := string(characters[:1]), strings.TrimPrefix(string(characters[1:]), variant)
	return first + string([]rune(tones)[number-2]) + rest, true
}
