package ingest

import (
	"testing"

	"parley/ingest/event"
)

// TestGroups checks whom roles and user groups admit, and who of them may approve.
func TestGroups(t *testing.T) {
	asked := 0
	people := func() *members {
		return &members{known: map[string][]string{}, ask: func(user string) []string {
			asked++
			return map[string][]string{"U1": {"S1", "S9"}, "U2": {"S2"}}[user]
		}}
	}
	for name, c := range map[string]struct {
		policy            func(p *Policy)
		approvers         []string
		sender            string
		payload           []string
		api               bool
		admitted, approve bool
	}{
		"no list":                     {nil, nil, "slack:U1", nil, false, true, true},
		"a member":                    {func(p *Policy) { p.AllowGroups = []string{"S1"} }, []string{"group:S1"}, "slack:U1", nil, false, true, true},
		"of another group":            {func(p *Policy) { p.AllowGroups = []string{"S1"} }, []string{"group:S1"}, "slack:U2", nil, false, false, false},
		"of none":                     {func(p *Policy) { p.AllowGroups = []string{"S1"} }, []string{"group:S1"}, "slack:U3", nil, false, false, false},
		"on the list of users":        {func(p *Policy) { p.AllowUsers, p.AllowGroups = []string{"U3"}, []string{"S1"} }, []string{"U3", "group:S1"}, "slack:U3", nil, false, true, true},
		"not on either":               {func(p *Policy) { p.AllowUsers, p.AllowGroups = []string{"U3"}, []string{"S1"} }, []string{"U3", "group:S1"}, "slack:U2", nil, false, false, false},
		"by the payload":              {func(p *Policy) { p.AllowRoles = []string{"R1"} }, []string{"role:R1"}, "slack:U2", []string{"R1"}, false, true, true},
		"no role in the payload":      {func(p *Policy) { p.AllowRoles = []string{"S2"} }, []string{"role:S2"}, "slack:U2", []string{}, false, false, false},
		"an empty list":               {func(p *Policy) { p.AllowRoles = []string{} }, []string{"U9"}, "slack:U1", nil, false, false, false},
		"a namesake of another place": {func(p *Policy) { p.AllowGroups = []string{"S1"} }, []string{"group:S1"}, "crm:U1", nil, false, false, false},
		"an id like an entry":         {func(p *Policy) { p.AllowUsers = []string{"U9"} }, []string{"role:5"}, "role:5", nil, true, false, false},
	} {
		g := defaultGate()
		g.people, g.API, g.Approvers = people(), c.api, func(string) []string { return c.approvers }
		if c.policy != nil {
			c.policy(&g.Policy)
		}
		m := room()
		m.Metadata.SenderID, m.Groups = c.sender, c.payload
		g.learn(m)
		before := asked
		if got := g.refusesHere(senderOf(m), m.Channel) == ""; got != c.admitted {
			t.Errorf("%s: admitted %t", name, got)
		}
		if got := g.approves("helper", m); got != c.approve {
			t.Errorf("%s: approves %t", name, got)
		}
		if asked != before {
			t.Errorf("%s: the platform is asked inside a transaction", name)
		}
	}
	g := defaultGate()
	g.people, g.Policy.AllowGroups = people(), []string{"S1"}
	quote := event.Quote{ExternalID: "C1/1", SenderID: "slack:U1", SenderType: event.Human, Content: "words"}
	if got := g.quoted(quote, "C1"); got.Hidden {
		t.Error("the words of a member are hidden")
	}
	if quote.SenderID = "slack:U2"; !g.quoted(quote, "C1").Hidden {
		t.Error("the words of somebody who is not admitted are shown")
	}
}
