package payload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// command returns Mara's slash command, with the given fields added or replaced.
func command(more object) object {
	fields := object{
		"team_id": "TACME0001", "api_app_id": "APARLEY01", "channel_id": "C1", "channel_name": "garden", "user_id": "UMARA0001",
		"command": "/ask", "text": "what is up", "trigger_id": "1.2.a",
	}
	for key, value := range more {
		fields[key] = value
	}
	return object{"type": "slash_commands", "payload": fields}
}

// buttonPress returns Mara's press of a button in our post, with the given fields added
// or replaced.
func buttonPress(action, more object) object {
	body := object{
		"type": "block_actions", "api_app_id": "APARLEY01", "team": object{"id": "TACME0001"}, "user": object{"id": "UMARA0001"},
		"trigger_id": "1.2.b", "channel": object{"id": "C1", "name": "garden"},
		"container": object{"type": "message", "message_ts": "1750000000.000100", "channel_id": "C1"},
		"message":   object{"bot_id": "BPARLEY01", "text": "May I?", "ts": "1750000000.000100"},
		"actions":   []object{action},
	}
	for key, value := range more {
		body[key] = value
	}
	return body
}

// TestCommandThread checks that each command in a channel is a thread of its own, and
// that the reply goes to no thread.
func TestCommandThread(t *testing.T) {
	known := fakeDirectory{self: us, types: map[string]event.ChannelType{"C2": event.ChannelGroup}}

	for name, c := range map[string]struct {
		more object
		want event.ThreadKey
	}{
		"in a channel":                        {nil, "slack:acme:C1:command-1-2-a"},
		"another one":                         {object{"trigger_id": "1.2.b"}, "slack:acme:C1:command-1-2-b"},
		"in a private channel":                {object{"channel_name": "privategroup"}, "slack:acme:C1:command-1-2-a"},
		"in a channel named directmessage":    {object{"channel_name": "directmessage"}, "slack:acme:C1:command-1-2-a"},
		"in a direct message":                 {object{"channel_id": "D1", "channel_name": "directmessage"}, "slack:acme:D1"},
		"in a group, by its name":             {object{"channel_name": "mpdm-a--b-1"}, "slack:acme:C1"},
		"in a group, by facts":                {object{"channel_id": "C2", "channel_name": "privategroup"}, "slack:acme:C2"},
		"with a trigger that no key can hold": {object{"trigger_id": "a:b"}, ""},
	} {
		keys := keysOf(t, command(c.more), known)
		if c.more["trigger_id"] == "a:b" {
			if !strings.HasPrefix(string(keys.Thread), "slack:acme:C1:command-") || strings.Count(string(keys.Thread), ":") != 3 {
				t.Errorf("%s: %s", name, keys.Thread)
			}
		} else if keys.Thread != c.want {
			t.Errorf("%s: %s, want %s", name, keys.Thread, c.want)
		}
		to, err := payload.Address(keys.Thread, "")
		if err != nil || to.Place != "" || !strings.Contains(string(keys.Thread), ":"+to.Channel) {
			t.Errorf("%s: the reply goes to %+v, %v", name, to, err)
		}
		if keys.Channel.Type != event.ChannelUnknown && to.Channel != "D1" {
			t.Errorf("%s: the type of %s is taken from a name: %s", name, to.Channel, keys.Channel.Type)
		}
	}
	for _, key := range []event.ThreadKey{"slack:acme:C1:command-", "slack:acme:C1:command-a.b", "slack:acme:C1:commander"} {
		if _, err := payload.Address(key, ""); err == nil {
			t.Errorf("%s is a valid thread", key)
		}
	}
}

// TestCommandWithoutText checks that the name of a command without a text is its word.
func TestCommandWithoutText(t *testing.T) {
	if m := messageOf(t, command(object{"command": "/stop", "text": ""}), fakeDirectory{self: us}); m.Command != "stop" || m.Content != "/stop" {
		t.Errorf("the message is %+v", m)
	}
	if m := messageOf(t, command(nil), fakeDirectory{self: us}); m.Command != "" || m.Content != "/ask what is up" {
		t.Errorf("the message is %+v", m)
	}
}

// TestInteractionKeyUsesTheTrigger compares the transports. Without a trigger the key
// is a hash of the body.
func TestInteractionKeyUsesTheTrigger(t *testing.T) {
	framed := func(kind string, payload any) object {
		return object{"type": kind, "envelope_id": "e1", "payload": payload, "accepts_response_payload": true}
	}
	bare := command(nil)["payload"]
	withoutTrigger := command(object{"trigger_id": ""})
	for name, c := range map[string]struct{ a, b object }{
		"a command":                   {command(nil), framed("slash_commands", bare)},
		"a command without a frame":   {command(nil), bare.(object)},
		"a button":                    {buttonPress(object{}, nil), framed("interactive", buttonPress(object{}, nil))},
		"a command without a trigger": {withoutTrigger, framed("slash_commands", withoutTrigger["payload"])},
	} {
		a, b := keysOf(t, c.a, fakeDirectory{self: us}), keysOf(t, c.b, fakeDirectory{self: us})
		if a.Dedupe != b.Dedupe || a.MessageID != b.MessageID || a.Result != nil {
			t.Errorf("%s: %+v, %+v", name, a, b)
		}
	}
}

// TestInteractionsOfOtherInstallations compares the installation of an interaction with
// our identity.
func TestInteractionsOfOtherInstallations(t *testing.T) {
	org := event.Self{TeamID: "EACME0001", UserID: "UPARLEY01", AppID: "APARLEY01"}
	member := event.Self{TeamID: "TACME0001", EnterpriseID: "EACME0001", UserID: "UPARLEY01", AppID: "APARLEY01"}
	whole := object{"team_id": "TBRANCH01", "enterprise_id": "EACME0001", "is_enterprise_install": "true"}
	teamless := object{"team": nil, "enterprise": object{"id": "EACME0001"}, "is_enterprise_install": true}
	for name, c := range map[string]struct {
		body    object
		self    event.Self
		foreign bool
	}{
		"our team's command":                  {command(nil), us, false},
		"our team's button":                   {buttonPress(object{}, nil), us, false},
		"another team's command":              {command(object{"team_id": "TOTHER001"}), us, true},
		"another team's button":               {buttonPress(object{}, object{"team": object{"id": "TOTHER001"}}), us, true},
		"another app's command":               {command(object{"api_app_id": "AOTHER001"}), us, true},
		"another app's button":                {buttonPress(object{}, object{"api_app_id": "AOTHER001"}), us, true},
		"our button, another team's user":     {buttonPress(object{}, object{"user": object{"id": "UFAR00001", "team_id": "TFAR00001"}}), us, false},
		"a command in an organisation":        {command(whole), org, false},
		"a button in an organisation":         {buttonPress(object{}, teamless), org, false},
		"a command, we know our team":         {command(whole), member, false},
		"a button, we know our team":          {buttonPress(object{}, teamless), member, false},
		"a branch with its own installation":  {command(object{"team_id": "TBRANCH01", "enterprise_id": "EACME0001"}), member, true},
		"another organisation's command":      {command(object{"team_id": "T9", "enterprise_id": "E9", "is_enterprise_install": "true"}), org, true},
		"another organisation's button":       {buttonPress(object{}, object{"team": object{"id": "T9"}, "enterprise": object{"id": "E9"}, "is_enterprise_install": true}), org, true},
		"an organisation's command, one team": {command(whole), us, true},
	} {
		settled := keysOf(t, c.body, fakeDirectory{self: c.self}).Result
		if foreign := settled != nil && settled.Reason == event.ReasonOtherWorkspace; foreign != c.foreign {
			t.Errorf("%s: foreign %v, settled %+v", name, foreign, settled)
		}
	}
}

// TestEventThroughOurTeam: in a shared channel and in an organisation, the callback may
// name another team.
func TestEventThroughOurTeam(t *testing.T) {
	body := eventCallback(messageEvent("hi", nil))
	delete(body, "authorizations")
	body["team_id"] = "TOTHER001"
	if keysOf(t, body, fakeDirectory{self: us}).Result == nil {
		t.Error("another team's event is ours")
	}
	body["context_team_id"] = "TACME0001"
	if settled := keysOf(t, body, fakeDirectory{self: us}).Result; settled != nil {
		t.Errorf("settled %+v", settled)
	}
	body["context_team_id"], body["enterprise_id"] = "TOTHER001", "EACME0001"
	if settled := keysOf(t, body, fakeDirectory{self: event.Self{TeamID: "EACME0001"}}).Result; settled != nil {
		t.Errorf("in our organisation: settled %+v", settled)
	}
}

// TestActionContentIsTheLabel checks that the content is the label, and that the
// metadata has the whole action, within bounds.
func TestActionContentIsTheLabel(t *testing.T) {
	directory := fakeDirectory{self: us, users: map[string]adapters.User{"UMARA0001": {DisplayName: "Mara"}}}
	option := func(text string) object {
		return object{"text": object{"type": "plain_text", "text": text}, "value": "v"}
	}
	for want, action := range map[string]object{
		"Yes <all>":            {"type": "button", "text": object{"type": "plain_text", "text": "Yes <all>"}, "value": "y"},
		"Noon":                 {"type": "static_select", "selected_option": option("Noon"), "placeholder": object{"text": "When?"}},
		"a & b":                {"type": "radio_buttons", "selected_option": object{"text": object{"type": "mrkdwn", "text": "a &amp; b"}}},
		"A, B":                 {"type": "checkboxes", "selected_options": []object{option("A"), option("B")}},
		"typed":                {"type": "plain_text_input", "value": "typed"},
		"2025-06-16":           {"type": "datepicker", "selected_date": "2025-06-16"},
		"08:30":                {"type": "timepicker", "selected_time": "08:30"},
		"2025-06-16T08:00:00Z": {"type": "datetimepicker", "selected_date_time": 1750060800},
		"<@U1>":                {"type": "users_select", "selected_user": "U1"},
		"<#C1>, <#C2>":         {"type": "multi_channels_select", "selected_channels": []string{"C1", "C2"}},
		"<#G1>":                {"type": "conversations_select", "selected_conversation": "G1"},
		"":                     {"type": "static_select", "selected_option": nil},
	} {
		m := messageOf(t, buttonPress(action, nil), directory)
		if m.Content != want || m.Quoted == nil || !m.Quoted.Own || m.Quoted.Content != "May I?" {
			t.Errorf("%q: %q about %+v", want, m.Content, m.Quoted)
		}
		raw, _ := json.Marshal(action)
		if len(m.Metadata.Extra) != 1 || m.Metadata.Extra[0].Key != "slack_action" || string(m.Metadata.Extra[0].Value) != string(raw) {
			t.Errorf("%q: metadata %s, want %s", want, m.Metadata.Bytes(), raw)
		}
	}
}

// TestActionKeysNameTheMessage: if the message is a post of ours, the action belongs to
// that post's thread.
func TestActionKeysNameTheMessage(t *testing.T) {
	if keys := keysOf(t, buttonPress(object{}, nil), fakeDirectory{self: us}); keys.PostID != "C1/1750000000.000100" {
		t.Errorf("%+v", keys)
	}
	if keys := keysOf(t, command(nil), fakeDirectory{self: us}); keys.PostID != "" {
		t.Errorf("%+v", keys)
	}
}

// TestPressedButtons: a message names the button of ours that the user pressed, and no other.
func TestPressedButtons(t *testing.T) {
	pressed := buttonPress(object{"type": "button", "action_id": "parley-b", "text": object{"type": "plain_text", "text": "No"}}, nil)
	if m := messageOf(t, pressed, fakeDirectory{self: us}); m.Pressed != "parley-b" || m.Content != "No" || m.Addressed != event.AddressedAction {
		t.Errorf("the message is %+v", m)
	}
	if m := messageOf(t, buttonPress(object{"type": "button", "action_id": "b"}, nil), fakeDirectory{self: us}); m.Pressed != "" {
		t.Errorf("the message is %+v", m)
	}
}

// TestOpenedLinks: Slack reports a button that opens an address too. It is no message of the user.
func TestOpenedLinks(t *testing.T) {
	opened := buttonPress(object{"type": "button", "action_id": adapters.LinkPrefix + "0a", "url": "https://a.example", "text": object{"type": "plain_text", "text": "Read"}}, nil)
	if out := normalized(t, opened, fakeDirectory{self: us}); out.Message != nil || out.Ignored != event.ReasonInteraction {
		t.Errorf("%+v", out)
	}
	if keys := keysOf(t, opened, fakeDirectory{self: us}); keys.Result == nil || keys.Thread != "" {
		t.Errorf("%+v", keys)
	}
}

// TestOpenedOnNeedsOurRoot replies to a message of ours and to another user's message.
func TestOpenedOnNeedsOurRoot(t *testing.T) {
	for parent, want := range map[string]string{"UPARLEY01": "C1/1750000000.000001", "UTOMAS001": ""} {
		for _, reply := range []object{{"parent_user_id": parent}, {"subtype": "thread_broadcast", "root": object{"user": parent}}} {
			reply["thread_ts"] = "1750000000.000001"
			if m := messageOf(t, eventCallback(messageEvent("and?", reply)), fakeDirectory{self: us}); m.OpenedOn != want {
				t.Errorf("%v: opened on %q, want %q", reply, m.OpenedOn, want)
			}
		}
	}
}

// TestInteractionsNeedNoIdentity checks the keys of interactions before our identity is
// known.
func TestInteractionsNeedNoIdentity(t *testing.T) {
	for _, body := range []object{command(nil), buttonPress(object{}, nil)} {
		if keys := keysOf(t, body, fakeDirectory{}); keys.Needs != "" || keys.Result != nil || keys.Thread == "" {
			t.Errorf("%+v", keys)
		}
	}
}
