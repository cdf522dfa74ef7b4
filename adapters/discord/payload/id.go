package payload

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/jsonobject"
)

// snowflake reads one of Discord's ids. It is empty if the member is missing.
func snowflake(d jsonobject.Fields, key string) string {
	var id string
	if d.Decode(key, "an id: a string of digits", &id) && !IsID(id) {
		d.Fault(key, "must be an id: a string of digits")
		return ""
	}
	return id
}

// requiredSnowflake is snowflake for a member whose absence is a fault.
func requiredSnowflake(d jsonobject.Fields, key string) string {
	if !d.Has(key) {
		d.Fault(key, "is required: an id, a string of digits")
	}
	return snowflake(d, key)
}

// snowflakes reads a list of ids, which must not be empty.
func snowflakes(d jsonobject.Fields, key string) []string {
	var ids []string
	if !d.Decode(key, "a list of ids", &ids) && d.Has(key) {
		return nil
	}
	if len(ids) == 0 {
		d.Fault(key, "must name at least one id")
	}
	for i, id := range ids {
		if !IsID(id) {
			d.Fault(fmt.Sprintf("%s[%d]", key, i), "must be an id: a string of digits")
		}
	}
	return ids
}

// IsID reports whether s has the form of a Discord id: 64 bits in decimal.
func IsID(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}

// epoch is the start of Discord's clock, in milliseconds since 1970.
const epoch = 1_420_070_400_000

// TimeOf returns the time in an id, or the zero time if id is not a number.
// https://docs.discord.com/developers/reference#snowflakes
func TimeOf(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC()
}

// IDAt returns the smallest id of a time, for the bounds of a page.
func IDAt(t time.Time) string {
	return strconv.FormatInt(max(t.UnixMilli()-epoch, 0)<<22, 10)
}

// Later returns the later of two ids.
func Later(a, b string) string {
	if CompareIDs(a, b) < 0 {
		return b
	}
	return a
}

// CompareIDs compares two ids by their numbers, which have no leading zeros.
func CompareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// MessageOf reads the link of a message, such as
// https://discord.com/channels/41771983423143937/127121515262115840/1267190211223752704, or its id. The place of a direct
// message is @me. It returns false for another text.
func MessageOf(ref string) (m adapters.MessageRef, ok bool) {
	m.ID = ref
	if link, err := url.Parse(ref); err == nil && link.Scheme == "https" {
		parts := strings.Split(strings.Trim(link.Path, "/"), "/")
		host := strings.TrimPrefix(strings.TrimPrefix(link.Hostname(), "ptb."), "canary.")
		if len(parts) != 4 || parts[0] != "channels" || host != "discord.com" && host != "discordapp.com" {
			return adapters.MessageRef{}, false
		}
		m.Channel, m.ID = parts[2], parts[3]
	}
	if !IsID(m.ID) || len(m.ID) < minID {
		return adapters.MessageRef{}, false
	}
	m.SentAt = TimeOf(m.ID)
	return m, true
}

// Link returns the link of a message, which MessageOf reads. An empty server is that of direct messages.
func Link(guild, channel, id string) string {
	return "https://discord.com/channels/" + cmp.Or(guild, "@me") + "/" + channel + "/" + id
}

// minID is the number of digits of the ids of Discord's first months.
const minID = 15
