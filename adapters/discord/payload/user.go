package payload

import (
	"context"
	"strings"

	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// user is the author of a message or a mentioned user.
type user struct {
	id         string
	nick       string // in the guild
	globalName string
	username   string
	bot        bool
	hasMember  bool     // the payload has the nickname, if there is one
	webhook    bool     // a webhook, which is no member
	roles      []string // in the guild; nil if the payload does not name them
	// application is the program behind a bot or a webhook; empty if the message does not name it.
	application string
}

// readRoles returns the roles of a member; nil if the payload does not name them.
func readRoles(member jsonobject.Fields) (roles []string) {
	if member.Has("roles") {
		member.Optional().Decode("roles", "a list of ids", &roles)
	}
	return roles
}

func readUser(d jsonobject.Fields) user {
	names := d.Optional()
	u := user{
		id:         requiredSnowflake(d, "id"),
		nick:       readNick(d),
		hasMember:  d.Has("member"),
		globalName: names.Text("global_name"),
		username:   names.Text("username"),
	}
	bot, system := d.Flag("bot"), d.Flag("system")
	u.bot = bot || system
	return u
}

// readAuthor reads a message's author, and returns false if there is none. A webhook writes
// under its own id, with a name chosen for each message.
func readAuthor(d jsonobject.Fields) (user, bool) {
	webhook := snowflake(d, "webhook_id")
	author, ok := d.Child("author")
	if !ok {
		return user{}, false
	}
	u := readUser(author)
	u.webhook = webhook != ""
	u.bot = u.bot || u.webhook
	if u.bot {
		if id := strings.Trim(string(d.Raw("application_id")), `"`); IsID(id) {
			u.application = id
		}
	}
	return u, true
}

// readReactor reads the user who added or removed a reaction. Only an added one in a server has the
// member, and with it the names.
func readReactor(d jsonobject.Fields) user {
	u := user{id: requiredSnowflake(d, "user_id")}
	member, _ := d.Child("member")
	if who, ok := member.Child("user"); ok {
		names := who.Optional()
		u.nick, u.globalName, u.username, u.bot = readNick(d), names.Text("global_name"), names.Text("username"), who.Flag("bot")
	}
	return u
}

// readNick reads the nickname from the member object beside a user.
func readNick(d jsonobject.Fields) string {
	member, _ := d.Optional().Child("member")
	return member.Text("nick")
}

// resolve looks up the nickname that the payload lacks, and a user whom it does not name.
func (u user) resolve(ctx context.Context, directory adapters.Directory, guild string) user {
	if guild != "" && !u.hasMember && !u.webhook && u.id != "" {
		if known, ok := directory.User(ctx, guild+"/"+u.id); ok {
			u.nick = known.DisplayName
			u.bot = u.bot || known.IsBot
		}
	}
	if u.name() != u.id {
		return u
	}
	if known, ok := directory.User(ctx, u.id); ok {
		u.globalName = known.DisplayName
		u.bot = u.bot || known.IsBot
	}
	return u
}

// name returns the displayed name: the first of nickname, display name and user name that is
// not blank, or else the id.
func (u user) name() string {
	for _, name := range []string{u.nick, u.globalName, u.username} {
		if strings.TrimSpace(name) != "" {
			return name
		}
	}
	return u.id
}

func (u user) senderType() event.SenderType {
	if u.bot {
		return event.Bot
	}
	return event.Human
}

// mentionToken returns the token that mentions the user. Bots have none.
func (u user) mentionToken() string {
	if u.bot {
		return ""
	}
	return "<@" + u.id + ">"
}

func (u user) is(self event.Self) bool { return u.id != "" && u.id == self.UserID }

func senderID(userID string) string { return "discord:" + userID }
