package read

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/memory"
	"parley/ingest/event"
)

// TestNamesOfRolesAndChannels: the memory of servers names the roles and channels of the server of the
// message, except a channel that some of its readers do not see.
func TestNamesOfRolesAndChannels(t *testing.T) {
	m := memory.New()
	m.Servers.Begin(0, event.Self{UserID: "900"}, nil)
	const hidden = `"permission_overwrites":[{"id":"ROLE","type":0,"allow":"ALLOW","deny":"DENY"}]`
	rule := func(role, allow, deny string) string {
		return strings.NewReplacer("ROLE", role, "ALLOW", allow, "DENY", deny).Replace(hidden)
	}
	for _, data := range []string{
		`{"id":"1","roles":[{"id":"1","name":"@everyone","permissions":"1024"},{"id":"5","name":"growers"}],"channels":[
			{"id":"10","name":"shed"},{"id":"11","name":"tools"},
			{"id":"12","name":"staff",` + rule("1", "0", "1024") + `},{"id":"13","name":"staff-too",` + rule("1", "0", "1024") + `}],
			"threads":[{"id":"14","name":"beds","type":11,"parent_id":"10"},{"id":"15","name":"secret","type":12,"parent_id":"10"},{"id":"16","name":"plans","type":11,"parent_id":"12"}]}`,
		`{"id":"2","roles":[{"id":"2","name":"@everyone","permissions":"0"},{"id":"6","name":"others"}],"channels":[
			{"id":"20","name":"hall"},{"id":"21","name":"yard"},{"id":"22","name":"staff",` + rule("6", "0", "1024") + `},{"id":"23","name":"open",` + rule("2", "1024", "0") + `}]}`,
	} {
		m.Servers.Arrive([]byte(data), "", true, time.Now())
	}
	for _, c := range []struct{ in, token, want string }{
		{"10", "<@&5>", "growers"}, {"10", "<#11>", "tools"}, {"10", "<#14>", "beds"}, {"14", "<#10>", "shed"}, {"12", "<#12>", "staff"}, {"12", "<#13>", "staff-too"},
		{"12", "<#16>", "plans"}, {"20", "<#21>", "yard"}, {"22", "<#23>", "open"}, // of a server that hides its channels from newcomers
		{"10", "<#12>", ""}, {"10", "<#15>", ""}, {"10", "<#16>", ""}, {"20", "<#22>", ""}, // hidden
		{"10", "<@&6>", ""}, {"10", "<#21>", ""}, {"99", "<#10>", ""}, {"10", "<#99>", ""}, {"10", "<@10>", ""}, {"10", "shed", ""},
	} {
		got, err := New(call.New(call.Options{}), m, "acme").LookupMention(t.Context(), c.in, c.token)
		if got != c.want || errors.Is(err, adapters.ErrNoName) != (c.want == "") {
			t.Errorf("%s in %s: %q, %v; want %q", c.token, c.in, got, err, c.want)
		}
	}
}
