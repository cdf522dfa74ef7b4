package ingest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/strangers"
)

// arrival is the time at which the messages of these tests arrive.
var arrival = time.Date(2026, 9, 21, 14, 0, 0, 0, time.UTC)

// store holds the facts that a gate looks up.
type store struct {
	ours     string // external id of one of our messages
	answered bool
	last     time.Time       // of the thread's last message
	said     bool            // the sender has been told of the pause
	before   event.Addressed // how the message addressed us that this one continues
	botRuns  int
	echoes   int

	invocationOnly bool
	question       *runs.Question
	press          card.Press // of a card
	stranger       strangers.Stranger
	strangers      int
	envelope       int64 // of the message

	channel string // arguments of the last BotRuns
	since   time.Time
}

func (s *store) Ours(id string) bool { return id == s.ours }

func (s *store) Stranger(string) strangers.Stranger { return s.stranger }

func (s *store) Carries(envelope int64) bool { return envelope == s.envelope && envelope != 0 }

func (s *store) StrangerOf(question string) (found strangers.Stranger) {
	if s.stranger.Question == question {
		found = s.stranger
	}
	return found
}

func (s *store) Strangers() int { return s.strangers }

func (s *store) Continued(*event.Message) event.Addressed { return s.before }

// Echoes implements record.Look.
func (s *store) Echoes(string, time.Time) int { return s.echoes }

func (s *store) Answered() bool { return s.answered }

func (s *store) Question() *runs.Question { return s.question }

func (s *store) Cause(string) (string, bool) { return "", false }

func (s *store) OwnRuns(time.Time) (int, int) { return 0, 0 }

func (s *store) Pressed(json.RawMessage) (*card.Press, string) {
	if s.press.ID == "" {
		return nil, ""
	}
	return &s.press, "helper"
}

func (s *store) CardButton(id string) (*card.Press, string) {
	if id == s.press.ID {
		return &s.press, "helper"
	}
	return nil, ""
}

func (s *store) InvocationOnly() bool { return s.invocationOnly }

func (s *store) Said(string, string, time.Time) bool { return s.said }

func (s *store) Quiet(since time.Time) bool { return s.last.Before(since) }

func (s *store) BotRuns(channel string, since time.Time) int {
	s.channel, s.since = channel, since
	return s.botRuns
}

// room returns a person's message in a room, which addresses nobody.
func room() *event.Message {
	return &event.Message{
		ExternalID: "C1/1", Channel: event.Channel{ID: "C1", Type: event.ChannelRoom}, Content: "are we still on?", SentAt: arrival,
		Metadata: event.Metadata{
			Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human,
			ChannelExternalID: "C1", MentionToken: "<@U1>",
		},
	}
}

func defaultGate() gate {
	return gate{
		Settings: Settings{Agent: "helper", Policy: DefaultPolicy(), Approvers: func(string) []string { return nil }}, kind: event.KindMessage, senders: "slack",
		arrived: arrival, now: func() time.Time { return arrival },
	}
}

// verdict is a decision without its metadata.
type verdict struct {
	Trigger messages.Trigger
	Reason  string
	Kept    string // stored, noted or ignored
}

func (g gate) verdict(t *testing.T, m *event.Message, look record.Look) verdict {
	t.Helper()
	d := g.decide(m, look)
	v := verdict{d.Trigger, d.Reason, "stored"}
	if d.Note {
		v.Kept = "noted"
	}
	if d.Ignore {
		v.Kept = "ignored"
	}
	return v
}

var (
	triggers  = func(reason string) verdict { return verdict{messages.TriggerRun, reason, "stored"} }
	passively = func(reason string) verdict { return verdict{messages.TriggerPassive, reason, "stored"} }
	ignored   = func(reason string) verdict { return verdict{messages.TriggerNone, reason, "ignored"} }
	noted     = verdict{messages.TriggerNone, "not-addressed", "noted"}
)

// TestGate is section 7 of the design as a table.
func TestGate(t *testing.T) {
	type change func(m *event.Message, p *Policy, s *store)
	addressed := func(how event.Addressed) change {
		return func(m *event.Message, _ *Policy, _ *store) { m.Addressed = how }
	}
	mention := addressed(event.AddressedMention)
	with := func(changes ...change) change {
		return func(m *event.Message, p *Policy, s *store) {
			for _, c := range changes {
				c(m, p, s)
			}
		}
	}
	policy := func(set func(p *Policy)) change { return func(_ *event.Message, p *Policy, _ *store) { set(p) } }
	open := policy(func(p *Policy) { p.RequireMention = false })
	noMemory := policy(func(p *Policy) { p.PassiveMemory = false })
	botsRun := policy(func(p *Policy) { p.BotMessages = BotsRun })
	botsIgnored := policy(func(p *Policy) { p.BotMessages = BotsIgnored })
	bots := func(ids ...string) change { return policy(func(p *Policy) { p.AllowBots = ids }) }
	bot := func(m *event.Message, _ *Policy, _ *store) { m.Metadata.SenderType = event.Bot }
	fromMe := func(m *event.Message, _ *Policy, _ *store) { m.Metadata.IsFromMe = new(true) }
	ownerRuns := policy(func(p *Policy) { p.FromMe = true })
	directChat := func(m *event.Message, _ *Policy, _ *store) { m.Channel.Type = event.ChannelDirect }
	silent := func(m *event.Message, _ *Policy, _ *store) { m.Passive = true }
	old := func(m *event.Message, _ *Policy, _ *store) { m.SentAt = arrival.Add(-time.Hour - time.Millisecond) }
	replies := func(m *event.Message, _ *Policy, s *store) { m.ReplyTo, s.ours = "C1/0", "C1/0" }
	follow := with(policy(func(p *Policy) { p.FollowThreads = true }), func(m *event.Message, _ *Policy, s *store) { m.FollowUp, s.answered = true, true })
	users := func(ids ...string) change { return policy(func(p *Policy) { p.AllowUsers = ids }) }
	channels := func(ids ...string) change { return policy(func(p *Policy) { p.AllowChannels = ids }) }
	invoked := func(_ *event.Message, _ *Policy, s *store) { s.invocationOnly = true }
	botRuns := func(n int) change { return func(_ *event.Message, _ *Policy, s *store) { s.botRuns = n } }

	echoes := func(n int) change { return func(_ *event.Message, _ *Policy, s *store) { s.echoes = n } }
	agent := with(bot, botsRun, func(m *event.Message, _ *Policy, _ *store) { m.Known = new(event.Known) })
	empty := func(m *event.Message, _ *Policy, _ *store) { m.Content, m.Attachments = " \n", nil }
	toldFromMe := func(m *event.Message, _ *Policy, _ *store) { m.Metadata.IsFromMe = new(false) }

	for name, c := range map[string]struct {
		change change
		want   verdict
	}{
		"nothing addresses us":                     {with(), passively("no-mention")},
		"a mention":                                {mention, triggers("mention")},
		"a direct message":                         {addressed(event.AddressedDirect), triggers("direct")},
		"a mention where only mentions run":        {with(invoked, mention), triggers("mention")},
		"a command where only mentions run":        {with(invoked, addressed(event.AddressedCommand)), triggers("command")},
		"a direct message where only mentions run": {with(invoked, addressed(event.AddressedDirect)), passively("no-mention")},
		"an open channel where only mentions run":  {with(invoked, open), passively("no-mention")},
		"a reply, as the payload says":             {addressed(event.AddressedReply), triggers("reply")},
		"a reply, as the store says":               {replies, triggers("reply")},
		"a mention in a reply to us":               {with(replies, mention), triggers("mention")},
		"the rest of a mention":                    {func(m *event.Message, _ *Policy, s *store) { m.Continues, s.before = true, event.AddressedMention }, triggers("mention")},
		"not the rest of a mention":                {func(_ *event.Message, _ *Policy, s *store) { s.before = event.AddressedMention }, passively("no-mention")},
		"the rest of a text that asked nothing":    {func(m *event.Message, _ *Policy, _ *store) { m.Continues = true }, passively("no-mention")},
		"a reply to somebody else":                 {func(m *event.Message, _ *Policy, s *store) { m.ReplyTo, s.ours = "C1/9", "C1/0" }, passively("no-mention")},
		"a follow-up":                              {follow, triggers("followed")},
		"a follow-up, without follow_threads":      {with(follow, policy(func(p *Policy) { p.FollowThreads = false })), passively("no-mention")},
		"a follow-up that we have not answered":    {with(follow, func(_ *event.Message, _ *Policy, s *store) { s.answered = false }), passively("no-mention")},
		"no follow-up":                             {with(follow, func(m *event.Message, _ *Policy, _ *store) { m.FollowUp = false }), passively("no-mention")},
		"a bot's follow-up":                        {with(follow, bot, botsRun), passively("no-mention")},
		"a passive follow-up":                      {with(follow, silent), passively("passive")},
		"an old follow-up":                         {with(follow, old), passively("too-old")},
		"a follow-up that mentions us":             {with(follow, mention), triggers("mention")},
		"a follow-up in an open channel":           {with(follow, open), triggers("open")},
		"a follow-up, without passive memory":      {with(follow, noMemory), triggers("followed")},
		"an open channel":                          {open, triggers("open")},
		"a mention in an open channel":             {with(open, mention), triggers("mention")},
		"an agent outside":                         {with(agent, open, addressed(event.AddressedDirect)), passively("no-mention")},
		"an agent outside that mentions ours":      {with(agent, mention), triggers("mention")},
		"direct, its content comes later":          {with(addressed(event.AddressedDirect), empty), passively("empty")},
		"open, its content comes later":            {with(open, empty), passively("empty")},
		"a reply, its content comes later":         {with(replies, empty), passively("empty")},
		"the owner, its content comes later":       {with(fromMe, ownerRuns, directChat, empty), passively("empty")},
		"content comes later, without memory":      {with(open, empty, noMemory), noted},
		"passive, though it mentions us":           {with(mention, silent), passively("passive")},
		"passive in its metadata":                  {with(mention, func(m *event.Message, _ *Policy, _ *store) { m.Metadata.Passive = new(true) }), passively("passive")},
		"passive: false triggers nothing":          {func(m *event.Message, _ *Policy, _ *store) { m.Metadata.Passive = new(false) }, passively("no-mention")},
		"passive, without passive memory":          {with(silent, noMemory), passively("passive")},
		"no mention, without passive memory":       {noMemory, noted},
		"a mention, without passive memory":        {with(noMemory, mention), triggers("mention")},
		"open, without passive memory":             {with(noMemory, open), triggers("open")},
		"a bot":                                    {bot, passively("bot-message")},
		"a bot that mentions us":                   {with(bot, mention), passively("bot-message")},
		"a bot in an open channel":                 {with(bot, open), passively("bot-message")},
		"a bot's reply to us":                      {with(bot, replies), passively("bot-message")},
		"a bot's direct message":                   {with(bot, addressed(event.AddressedDirect)), passively("bot-message")},
		"an old bot":                               {with(bot, mention, old), passively("bot-message")},
		"a bot, without passive memory":            {with(bot, noMemory, mention), noted},
		"a bot, people listed":                     {with(bot, users("U0")), passively("bot-message")},
		"a bot on its list":                        {with(bot, bots("U1")), passively("bot-message")},
		"a bot whose other id is on the list":      {with(bot, bots("B7"), func(m *event.Message, _ *Policy, _ *store) { m.AltSenderID = "B7" }), passively("bot-message")},
		"a bot not on its list":                    {with(bot, bots("U0", "")), ignored("bot-message")},
		"no bot is on the list":                    {with(bot, policy(func(p *Policy) { p.AllowBots = []string{} }), botsRun, mention), ignored("bot-message")},
		"a bot in a refused channel":               {with(bot, channels("C2")), ignored("channel-refused")},
		"a person, bots listed":                    {with(bots("U0"), mention), triggers("mention")},
		"an ignored bot":                           {with(bot, botsIgnored), ignored("bot-message")},
		"an ignored bot that mentions us":          {with(bot, botsIgnored, mention), ignored("bot-message")},
		"an ignored bot on the list":               {with(bot, botsIgnored, bots("U1")), ignored("bot-message")},
		"an allowed bot":                           {with(bot, botsRun), passively("no-mention")},
		"an allowed bot, mention":                  {with(bot, botsRun, mention), triggers("mention")},
		"one run below the loop guard":             {with(bot, botsRun, mention, botRuns(9)), triggers("mention")},
		"the loop guard":                           {with(bot, botsRun, mention, botRuns(10)), passively("loop-guard")},
		"the loop guard, open channel":             {with(bot, botsRun, open, botRuns(10)), passively("loop-guard")},
		"the loop guard ignores people":            {with(mention, botRuns(1000)), triggers("mention")},
		"our posts in another name":                {with(mention, toldFromMe, echoes(9)), triggers("mention")},
		"the loop guard, our posts":                {with(mention, toldFromMe, echoes(10)), passively("loop-guard")},
		"repetitions on a platform with bots":      {with(mention, echoes(1000)), triggers("mention")},
		"too old":                                  {with(mention, old), passively("too-old")},
		"too old in an open channel":               {with(open, old), passively("too-old")},
		"too old, without passive memory":          {with(mention, old, noMemory), passively("too-old")},
		"at the age limit":                         {with(mention, func(m *event.Message, _ *Policy, _ *store) { m.SentAt = arrival.Add(-time.Hour) }), triggers("mention")},
		"without a time":                           {with(mention, func(m *event.Message, _ *Policy, _ *store) { m.SentAt = time.Time{} }), triggers("mention")},
		"the owner's mention":                      {with(fromMe, mention), passively("from-me")},
		"the owner, in an open channel":            {with(fromMe, open), passively("from-me")},
		"the owner, without passive memory":        {with(fromMe, noMemory), noted},
		"the owner in a chat with oneself":         {with(fromMe, addressed(event.AddressedDirect)), triggers("direct")},
		"the owner in a direct chat":               {with(fromMe, directChat), passively("from-me")},
		"the owner, with from_me: run":             {with(fromMe, ownerRuns, directChat), triggers("direct")},
		"another in a chat, with from_me: run":     {with(ownerRuns, directChat), passively("no-mention")},
		"the owner in a group, from_me: run":       {with(fromMe, ownerRuns), passively("no-mention")},
		"the owner in an open group, from_me: run": {with(fromMe, ownerRuns, open), triggers("open")},
		"is_from_me: false":                        {with(mention, func(m *event.Message, _ *Policy, _ *store) { m.Metadata.IsFromMe = new(false) }), triggers("mention")},
		"a user on the list":                       {with(users("U0", "U1"), mention), triggers("mention")},
		"a user who is not on the list":            {with(users("U0"), mention), ignored("user-refused")},
		"a list of names admits nobody":            {with(users("Olivia"), mention), ignored("user-refused")},
		"an empty list admits nobody":              {with(policy(func(p *Policy) { p.AllowUsers = []string{} }), mention), ignored("user-refused")},
		"a channel on the list":                    {with(channels("C1"), mention), triggers("mention")},
		"a channel not on the list":                {with(channels("C2"), mention), ignored("channel-refused")},
		"an empty list of channels":                {with(policy(func(p *Policy) { p.AllowChannels = []string{} }), mention), ignored("channel-refused")},
		"a command":                                {addressed(event.AddressedCommand), triggers("command")},
		"a command, without passive memory":        {with(addressed(event.AddressedCommand), noMemory), triggers("command")},
		"a bot's command":                          {with(bot, addressed(event.AddressedCommand)), passively("bot-message")},
		"a bot's command, the loop guard":          {with(bot, botsRun, addressed(event.AddressedCommand), botRuns(10)), passively("loop-guard")},
		"a refused user's command":                 {with(users("U0"), addressed(event.AddressedCommand)), ignored("user-refused")},
		"a command in a refused channel":           {with(channels("C2"), addressed(event.AddressedCommand)), ignored("channel-refused")},
		"a button":                                 {addressed(event.AddressedAction), passively("action")},
		"a button in an open channel":              {with(open, addressed(event.AddressedAction)), passively("action")},
		"a button, without passive memory":         {with(noMemory, addressed(event.AddressedAction)), passively("action")},
		"a refused user's button":                  {with(users("U0"), addressed(event.AddressedAction)), ignored("user-refused")},
		"neither user nor channel":                 {with(users("U0"), channels("C2")), ignored("user-refused")},
		"a bot that may run, people listed":        {with(bot, botsRun, users("U0"), mention), triggers("mention")},
	} {
		t.Run(name, func(t *testing.T) {
			g, m, s := defaultGate(), room(), &store{}
			c.change(m, &g.Policy, s)
			if diff := cmp.Diff(c.want, g.verdict(t, m, s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAnEditHasATimeOfItsOwn proves that an edit of an old message is judged by the time of the edit.
func TestAnEditHasATimeOfItsOwn(t *testing.T) {
	old, now := arrival.AddDate(0, 0, -3), arrival.Add(-time.Minute)
	for _, c := range []struct {
		kind   event.Kind
		edited time.Time
		want   verdict
	}{
		{event.KindEdit, now, triggers("mention")},
		{event.KindEdit, old.Add(time.Hour), passively("too-old")},
		{event.KindEdit, time.Time{}, passively("too-old")},
		{event.KindMessage, now, passively("too-old")},
	} {
		g, m := defaultGate(), room()
		g.kind, m.SentAt, m.EditedAt, m.Addressed = c.kind, old, c.edited, event.AddressedMention
		if diff := cmp.Diff(c.want, g.verdict(t, m, &store{})); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
	}
}

// TestAllowedServers: a message without a server is a direct one, whose sender must be listed.
func TestAllowedServers(t *testing.T) {
	for _, c := range []struct {
		list, users []string
		server      string
		kind        event.ChannelType
		refused     string
	}{
		{nil, nil, "S2", event.ChannelRoom, ""},
		{[]string{"S1"}, nil, "S1", event.ChannelRoom, ""},
		{[]string{"S1"}, nil, "S2", event.ChannelRoom, "server-refused"},
		{[]string{"S1"}, []string{"U1"}, "S2", event.ChannelRoom, "server-refused"},
		{[]string{}, nil, "S1", event.ChannelRoom, "server-refused"},
		{[]string{"S1"}, []string{"U2"}, "S1", event.ChannelRoom, "user-refused"},
		{[]string{"S1"}, nil, "S1", event.ChannelDirect, ""},
		{[]string{"S1"}, nil, "", event.ChannelDirect, "server-refused"},
		{[]string{"S1"}, []string{"U2"}, "", event.ChannelDirect, "server-refused"},
		{[]string{"S1"}, []string{"U1"}, "", event.ChannelDirect, ""},
		{[]string{"S1"}, nil, "", event.ChannelUnknown, ""}, // an edit that does not name its server
	} {
		g, m := defaultGate(), room()
		g.Policy.AllowServers, g.Policy.AllowUsers, g.server = c.list, c.users, c.server
		m.Channel.Type, m.Addressed = c.kind, event.AddressedMention
		want := triggers("mention")
		if c.refused != "" {
			want = ignored(c.refused)
		}
		if diff := cmp.Diff(want, g.verdict(t, m, &store{})); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
	}
}

// TestOnlyMessagesFollow proves that neither an edit nor a reaction continues a thread.
func TestOnlyMessagesFollow(t *testing.T) {
	for _, kind := range []event.Kind{event.KindEdit, event.KindReaction} {
		g, m := defaultGate(), room()
		g.kind, g.Policy.FollowThreads, m.FollowUp = kind, true, true
		if diff := cmp.Diff(passively("no-mention"), g.verdict(t, m, &store{answered: true})); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

// TestLoopGuardCountsByChannelAndTime proves that the loop guard counts runs in the
// message's channel, within its period.
func TestLoopGuardCountsByChannelAndTime(t *testing.T) {
	g, m, s := defaultGate(), room(), &store{}
	g.Policy.BotMessages, m.Metadata.SenderType, m.Addressed = BotsRun, event.Bot, event.AddressedMention
	g.verdict(t, m, s)
	if s.channel != "C1" || !s.since.Equal(arrival.Add(-5*time.Minute)) {
		t.Errorf("bot runs counted in %q since %v", s.channel, s.since)
	}
}

// TestAgeNeedsAnArrivalTime covers the replay of a bare payload, which has none.
func TestAgeNeedsAnArrivalTime(t *testing.T) {
	g, m := defaultGate(), room()
	g.arrived = time.Time{}
	m.Addressed, m.SentAt = event.AddressedMention, arrival.AddDate(-3, 0, 0)
	if diff := cmp.Diff(triggers("mention"), g.verdict(t, m, &store{})); diff != "" {
		t.Error(diff)
	}
}

// TestWebHasNoLoopGuard holds because a token admitted each client.
func TestWebHasNoLoopGuard(t *testing.T) {
	g, m := defaultGate(), room()
	g.KeepMetadata, g.Policy.BotMessages = true, BotsRun
	m.Metadata.SenderType, m.Addressed = event.Bot, event.AddressedDirect
	if diff := cmp.Diff(triggers("direct"), g.verdict(t, m, &store{botRuns: 99})); diff != "" {
		t.Error(diff)
	}
}

// TestRunHints compares the stored metadata with the contract's Slack example.
func TestRunHints(t *testing.T) {
	const sender = `"source":"slack","sender_id":"slack:U1","sender_display_name":"Olivia","sender_type":"human",` +
		`"channel_external_id":"C1","mention_token":"<@U1>"`
	for name, c := range map[string]struct {
		change func(m *event.Message, p *Policy)
		want   string
	}{
		"addressed": {
			func(m *event.Message, _ *Policy) { m.Addressed = event.AddressedMention },
			`{` + sender + `,"passive":false,"include_in_memory":true,"trigger_rag":true,"recipient_id":"bot:helper"}`,
		},
		"passive": {
			func(*event.Message, *Policy) {},
			`{` + sender + `,"passive":true,"include_in_memory":true,"trigger_rag":false}`,
		},
		"open: a run, and no recipient": {
			func(_ *event.Message, p *Policy) { p.RequireMention = false },
			`{` + sender + `,"passive":false,"include_in_memory":true,"trigger_rag":true}`,
		},
		"addressed, too old: a recipient, and no run": {
			func(m *event.Message, _ *Policy) {
				m.Addressed, m.SentAt = event.AddressedDirect, arrival.AddDate(0, 0, -1)
			},
			`{` + sender + `,"passive":true,"include_in_memory":true,"trigger_rag":true,"recipient_id":"bot:helper"}`,
		},
		"addressed, without passive memory": {
			func(m *event.Message, p *Policy) { m.Addressed, p.PassiveMemory = event.AddressedReply, false },
			`{` + sender + `,"passive":false,"include_in_memory":false,"trigger_rag":true,"recipient_id":"bot:helper"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := defaultGate(), room()
			c.change(m, &g.Policy)
			d := g.decide(m, &store{})
			if diff := cmp.Diff(c.want, string(d.Metadata)); diff != "" {
				t.Error(diff)
			}
			if m.Metadata.Passive != nil || m.Metadata.RecipientID != "" {
				t.Error("decide changed its message")
			}
		})
	}
}

// TestMetadataIsKeptAsGiven proves that the web API adds no hint, and changes no byte.
func TestMetadataIsKeptAsGiven(t *testing.T) {
	const given = `{ "x": 1e2, "sender_type":"bot", "source":"crm","sender_id":"crm:7","sender_display_name":"CRM" ,"passive":null}`
	metadata, err := event.ParseMetadata([]byte(given))
	if err != nil {
		t.Fatal(err)
	}
	g, m := defaultGate(), room()
	g.KeepMetadata, g.Policy.BotMessages = true, BotsRun
	m.Metadata, m.Addressed = metadata, event.AddressedDirect
	if d := g.decide(m, &store{}); string(d.Metadata) != given {
		t.Errorf("stored %s", d.Metadata)
	}
}

// TestOnlyACallerKeepsAMessageOutOfMemory: the hint has an effect only if a client of our API
// gives it.
func TestOnlyACallerKeepsAMessageOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		caller bool
		hint   *bool
		want   bool
	}{{true, new(false), true}, {true, new(true), false}, {true, nil, false}, {false, new(false), false}} {
		g, m := defaultGate(), room()
		g.KeepMetadata, m.Metadata.IncludeInMemory = c.caller, c.hint
		if got := g.decide(m, &store{}).NoMemory; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestReactionsPassTheSameGate proves that a sender who may not write may not react.
func TestReactionsPassTheSameGate(t *testing.T) {
	in := func(ownID string) *workspace {
		known := names{"UB": {DisplayName: "Hal", IsBot: true}}
		w := &workspace{config: Workspace{Senders: "slack", Names: known}, memory: &memory{}}
		w.self.Store(&event.Self{UserID: ownID})
		return w
	}
	for name, c := range map[string]struct {
		sender string
		change func(p *Policy)
		want   string
	}{
		"a bot's":                   {"slack:UB", func(*Policy) {}, ""},
		"a bot's, people listed":    {"slack:UB", func(p *Policy) { p.AllowUsers = []string{"U0"} }, ""},
		"an ignored bot's":          {"slack:UB", func(p *Policy) { p.BotMessages = BotsIgnored }, "bot-message"},
		"a bot not on the list":     {"slack:UB", func(p *Policy) { p.AllowBots = []string{"B7"} }, "bot-message"},
		"a stranger, bots listed":   {"slack:U9", func(p *Policy) { p.AllowBots = []string{"B7"} }, ""},
		"anybody's":                 {"slack:U1", func(*Policy) {}, ""},
		"ours":                      {"slack:UBOT", func(*Policy) {}, "own-message"},
		"from another server":       {"slack:U1", func(p *Policy) { p.AllowServers = []string{"S2"} }, "server-refused"},
		"a user not on the list":    {"slack:U1", func(p *Policy) { p.AllowUsers = []string{"U0"} }, "user-refused"},
		"a channel not on the list": {"slack:U1", func(p *Policy) { p.AllowChannels = []string{} }, "channel-refused"},
	} {
		g := defaultGate()
		g.server = "S1"
		c.change(&g.Policy)
		e := &resolved{Event: event.Event{Reaction: &event.Reaction{SenderID: c.sender}}, channel: "C1"}
		if got := in("UBOT").refusesReaction(t.Context(), g, e); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for channels, want := range map[string]string{"C1": "", "C2": "channel-refused"} {
		g := defaultGate()
		g.Policy.AllowUsers, g.Policy.AllowChannels = []string{"U0"}, []string{channels}
		for _, ownID := range []string{"", "UBOT"} { // a recording may not name us
			e := &resolved{Event: event.Event{Reaction: &event.Reaction{All: true}}, channel: "C1"}
			if got := in(ownID).refusesReaction(t.Context(), g, e); got != want {
				t.Errorf("the removal of all reactions in C1, with %s on the list: %q, want %q", channels, got, want)
			}
		}
	}
}

// TestQuotationsPassTheSameGate proves that the text and the name of a refused author, or from
// a refused channel, reach nobody through another person's message.
func TestQuotationsPassTheSameGate(t *testing.T) {
	admitted := event.Quote{ExternalID: "C1/0", SenderID: "slack:U1", Name: "Olivia", Content: "yes", Channel: "C1"}
	stranger, elsewhere, nameless, ours, bot, alias := admitted, admitted, admitted, admitted, admitted, admitted
	stranger.SenderID, elsewhere.Channel, ours.SenderID, ours.Own = "slack:U9", "C9", "slack:UBOT", true
	nameless.SenderID, nameless.Channel = "", ""
	ours.SenderType, bot.SenderType, alias.SenderType, alias.AltSenderID = event.Bot, event.Bot, event.Bot, "B7"
	hidden := event.Quote{ExternalID: "C1/0", Hidden: true}
	for name, c := range map[string]struct {
		policy        Policy
		quote         event.Quote
		quoted, shown bool // as a quotation, as a forward
	}{
		"without lists":                             {Policy{}, stranger, true, true},
		"an admitted author":                        {Policy{AllowUsers: []string{"U1"}}, admitted, true, true},
		"a refused author":                          {Policy{AllowUsers: []string{"U1"}}, stranger, false, false},
		"nobody is admitted":                        {Policy{AllowUsers: []string{}}, admitted, false, false},
		"our own message":                           {Policy{AllowUsers: []string{"U1"}}, ours, true, true},
		"an ignored bot":                            {Policy{BotMessages: BotsIgnored}, bot, false, false},
		"a shown bot":                               {Policy{BotMessages: BotsShown}, bot, true, true},
		"a bot that may run":                        {Policy{BotMessages: BotsRun}, bot, true, true},
		"a bot, people listed":                      {Policy{AllowUsers: []string{"U0"}}, bot, true, true},
		"a bot on its list":                         {Policy{AllowBots: []string{"U1"}}, bot, true, true},
		"a bot whose other id is on the list":       {Policy{AllowBots: []string{"B7"}}, alias, true, true},
		"a bot not on its list":                     {Policy{AllowBots: []string{"U9"}}, bot, false, false},
		"an unknown author, bots listed":            {Policy{AllowBots: []string{"U9"}}, nameless, false, false},
		"an author of unknown kind, on a list":      {Policy{AllowUsers: []string{"U1"}, AllowBots: []string{"U9"}}, admitted, true, true},
		"an admitted channel":                       {Policy{AllowChannels: []string{"C1"}}, admitted, true, true},
		"a refused channel":                         {Policy{AllowChannels: []string{"C1"}}, elsewhere, true, false},
		"an unknown author":                         {Policy{AllowUsers: []string{"U1"}}, nameless, false, false},
		"an unknown channel":                        {Policy{AllowChannels: []string{"C1"}}, nameless, true, false},
		"an unknown author in no list":              {Policy{}, nameless, true, true},
		"an admitted author from a refused channel": {Policy{AllowUsers: []string{"U1"}, AllowChannels: []string{"C1"}}, elsewhere, true, false},
	} {
		g, m := defaultGate(), room()
		g.Policy = c.policy
		quoted := c.quote
		m.Quoted, m.Forwarded = &quoted, []event.Quote{c.quote}
		g.hide(m)
		for as, result := range map[string]struct {
			got   event.Quote
			shown bool
		}{"quotation": {*m.Quoted, c.quoted}, "forward": {m.Forwarded[0], c.shown}} {
			want := hidden
			if result.shown {
				want = c.quote
			}
			if diff := cmp.Diff(want, result.got); diff != "" {
				t.Errorf("%s as a %s: %s", name, as, diff)
			}
		}
	}
}

// TestForwardsPassTheListOfServers: a quotation is of the message's own server, and a forward may be from any.
func TestForwardsPassTheListOfServers(t *testing.T) {
	for _, c := range []struct {
		list   []string
		server string
		shown  bool
	}{{nil, "S2", true}, {[]string{"S1"}, "S1", true}, {[]string{"S1"}, "S2", false}, {[]string{"S1"}, "", false}, {[]string{}, "S1", false}} {
		g, m := defaultGate(), room()
		g.Policy.AllowServers, g.server = c.list, "S1"
		m.Quoted, m.Forwarded = &event.Quote{ExternalID: "1", Content: "hi"}, []event.Quote{{ExternalID: "2", Content: "hi", Server: c.server}, {ExternalID: "3", Own: true}}
		g.hide(m)
		if m.Quoted.Hidden || m.Forwarded[0].Hidden == c.shown || (m.Forwarded[0].Content == "hi") != c.shown || m.Forwarded[1].Hidden {
			t.Errorf("%+v: %+v and %+v", c, m.Quoted, m.Forwarded)
		}
	}
}

// TestForwardedFilesPassTheSameGate: the files of a shown forward are files of the message, those of
// a refused one are nobody's, and judging twice changes nothing.
func TestForwardedFilesPassTheSameGate(t *testing.T) {
	g, m := defaultGate(), room()
	g.Policy.AllowChannels = []string{"C1"}
	m.Attachments = []event.Attachment{{ID: "F1", Name: "own"}}
	shown, refused := event.Attachment{ID: "F2", Name: "shown"}, event.Attachment{ID: "F3", Name: "refused"}
	gone := event.Attachment{ID: "F4", Name: "gone", Gone: true}
	m.Forwarded = []event.Quote{{Content: "a", Channel: "C1", Attached: []event.Attachment{shown, gone}}, {Content: "b", Channel: "C9", Attached: []event.Attachment{refused}}}
	for range 2 {
		g.hide(m)
	}
	if diff := cmp.Diff([]event.Attachment{{ID: "F1", Name: "own"}, shown}, m.Attachments); diff != "" {
		t.Error(diff)
	}
	want := []event.Quote{{Content: "a", Channel: "C1", FileNames: []string{"shown"}}, {Hidden: true}}
	if diff := cmp.Diff(want, m.Forwarded); diff != "" {
		t.Error(diff)
	}
}

// TestAllowedChannels: the id of a channel's parent admits the event's own channel, and no other
// one that a forward names.
func TestAllowedChannels(t *testing.T) {
	for _, c := range []struct {
		list        []string
		own, parent string
		id          string
		admitted    bool
	}{
		{nil, "C1", "", "C2", true},
		{[]string{}, "C1", "C0", "C1", false},
		{[]string{"C1"}, "C1", "", "C1", true},
		{[]string{"C1"}, "C1", "", "C2", false},
		{[]string{"C0"}, "C1", "C0", "C1", true},
		{[]string{"C0"}, "C1", "C0", "C2", false},
		{[]string{"C0"}, "C1", "C9", "C1", false},
		{[]string{""}, "C1", "", "C1", false},
	} {
		g := gate{channel: event.Channel{ID: c.own, Parent: c.parent}, Settings: Settings{Policy: Policy{AllowChannels: c.list}}}
		if got := g.admitsChannel(c.id); got != c.admitted {
			t.Errorf("%v admits %s in %s of %q: %v", c.list, c.id, c.own, c.parent, got)
		}
		wanted := ""
		if !c.admitted {
			wanted = event.ReasonChannelRefused
		}
		if got := g.refuses(sender{id: "slack:U1", kind: event.Human}, c.id); got != wanted {
			t.Errorf("%v: refused %s for %q", c.list, c.id, got)
		}
		if got := g.refuses(sender{id: "slack:U1", kind: event.Human}, ""); got != "" {
			t.Errorf("%v: an event without a channel is refused for %q", c.list, got)
		}
	}
}

// TestRestart checks which messages start a conversation again. The person is told.
func TestRestart(t *testing.T) {
	for name, c := range map[string]struct {
		kind   event.Kind
		typ    event.ChannelType
		after  time.Duration
		change func(m *event.Message, s *store)
		want   bool
	}{
		"after the quiet time": {event.KindMessage, event.ChannelDirect, time.Hour, nil, true},
		"without the key":      {event.KindMessage, event.ChannelDirect, 0, nil, false},
		"in a room":            {event.KindMessage, event.ChannelRoom, time.Hour, nil, false},
		"in a group":           {event.KindMessage, event.ChannelGroup, time.Hour, nil, false},
		"an edit":              {event.KindEdit, event.ChannelDirect, time.Hour, nil, false},
		"soon":                 {event.KindMessage, event.ChannelDirect, time.Hour, func(_ *event.Message, s *store) { s.last = arrival.Add(-time.Minute) }, false},
		"a message for nobody": {event.KindMessage, event.ChannelDirect, time.Hour, func(m *event.Message, _ *store) { m.Passive = true }, false},
		"a command":            {event.KindMessage, event.ChannelDirect, time.Hour, func(m *event.Message, _ *store) { m.Content = "/status" }, false},
		"a question is open":   {event.KindMessage, event.ChannelDirect, time.Hour, func(m *event.Message, s *store) { s.question = &runs.Question{Run: "r"} }, false},
	} {
		g := defaultGate()
		g.kind, g.RestartAfter, g.Prefix = c.kind, c.after, "/"
		m, s := room(), &store{last: arrival.Add(-2 * time.Hour)}
		m.Channel.Type, m.Addressed = c.typ, event.AddressedDirect
		if c.change != nil {
			c.change(m, s)
		}
		if d := g.decide(m, s); d.Restart != c.want || c.want != (d.Tell != nil && d.Command == "") && d.Command == "" {
			t.Errorf("%s: restart %t, told %v", name, d.Restart, d.Tell)
		}
	}
}
