package card_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"parley/ingest/card"
	"parley/ingest/event"
)

// golden is the card of the document's history.
const golden = `{"version":"2.0","locale":"zh-CN","status":"success","theme":"default","root":{"type":"stack","appearance":"card","children":[` +
	`{"type":"text","content":"日程已创建","role":"title"},{"type":"badge","label":"SUCCESS","status":"success"},{"type":"text","content":"您的会议日程创建成功","role":"body"}]}}`

// TestHints compiles hints: the document's example in each of its forms, and one with every hint.
func TestHints(t *testing.T) {
	const texts = `"locale":"zh-CN","status":"success","title":"日程已创建","body":"您的会议日程创建成功"`
	for hints, want := range map[string]string{
		`{` + texts + `}`:                      golden,
		`{` + texts + `,"badges":["SUCCESS"]}`: golden,
		`{` + texts + `,"badges":[{"label":"SUCCESS","status":"success"}],"items":null}`: golden,
		`{"body":"<b> & co"}`: `{"version":"2.0","locale":"und","status":"info","theme":"default","root":{"type":"stack","appearance":"card","children":[{"type":"text","content":"<b> & co","role":"body"}]}}`,
		`{"title":"T","badges":["a"],"items":["one",2,{"label":"Room","value":7}],"actions":["Yes",{"label":"Open","url":"https://x.y"}],"image":"https://x.y/c.png","progress":40}`: `{"version":"2.0","locale":"und","status":"info","theme":"default","root":{"type":"stack","appearance":"card","children":[` +
			`{"type":"text","content":"T","role":"title"},{"type":"badge","label":"a"},{"type":"image","url":"https://x.y/c.png"},` +
			`{"type":"list","items":[{"type":"text","content":"one"},{"type":"text","content":"2"},{"type":"text","content":"Room: 7"}]},` +
			`{"type":"progress","value":40,"max":100},` +
			`{"type":"stack","appearance":"actions","children":[{"type":"button","label":"Yes","value":"Yes"},{"type":"button","label":"Open","url":"https://x.y"}]}]}}`,
		`{"progress":{"value":0,"max":3,"label":"steps"}}`: `{"version":"2.0","locale":"und","status":"info","theme":"default","root":{"type":"stack","appearance":"card","children":[{"type":"progress","label":"steps","value":0,"max":3}]}}`,
	} {
		got, err := card.Compile(json.RawMessage(`{"mood":1.50,"ui_hints":` + hints + `}`))
		if err != nil || string(got) != `{"mood":1.50,"uiSchema":`+want+`}` {
			t.Errorf("%s: %v\n%s\nwant\n%s", hints, err, got, want)
		}
		if _, err := card.Read(json.RawMessage(want), "uiSchema"); err != nil {
			t.Errorf("the compiled card: %v", err)
		}
	}
	nested, err := card.Compile(json.RawMessage(`{"tool":"calendar","tool_agent_output":{"ui_hints":{` + texts + `}}}`))
	if err != nil || !strings.HasSuffix(string(nested), `,"uiSchema":`+golden+`}`) {
		t.Errorf("nested hints: %v %s", err, nested)
	}
}

// TestDetailsStay checks that a valid card and details without one keep their bytes.
func TestDetailsStay(t *testing.T) {
	for _, details := range []string{
		``, `null`, `7`, `{"a":1}`, `{"uiSchema":null}`, `["ui_hints"]`, `{"a":"uiSchema"}`,
		`{"a":1.50,"uiSchema":` + golden + `}`,
		`{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","later":1.50,"root":{"type":"carousel","content":"x","children":["a",{"type":"text","content":"b"}]}}}`,
		`{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"table","columns":["a","b"],"rows":[["x",1],[{"type":"badge","label":"y"}]]}}}`,
		`{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"divider"}}}`,
	} {
		if got, err := card.Compile(json.RawMessage(details)); err != nil || string(got) != details {
			t.Errorf("%s: %v %s", details, err, got)
		}
	}
}

// TestFaultsNameTheirPaths checks the path of each fault, and that the details without the card are left.
func TestFaultsNameTheirPaths(t *testing.T) {
	deep := strings.Repeat(`{"type":"stack","children":[`, 20) + strings.Repeat(`]}`, 20)
	many := `{"type":"stack","children":[` + strings.Repeat(`"x",`, 600) + `"x"]}`
	schema := func(root string) string {
		return `{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":` + root + `}}`
	}
	for details, want := range map[string]string{
		`{"uiSchema":7}`: "uiSchema",
		`{"uiSchema":{"root":{"type":"divider"}}}`:                                                                           "uiSchema.version",
		`{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default"}}`:                                     "uiSchema.root",
		`{"uiSchema":{"version":"2.0","locale":"en","theme":"default","status":"fine","root":{"type":"divider"}}}`:           "uiSchema.status",
		`{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"red","root":{"type":"divider"}}}`:               "uiSchema.theme",
		`{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","meta":[],"root":{"type":"divider"}}}`: "uiSchema.meta",
		`{"uiSchema":{"version":"2.0","status":"info","theme":"dark","root":{"type":"divider"}}}`:                            "uiSchema.locale",
		`{"uiSchema":{"version":"2.0","locale":"en","theme":"dark","root":{"type":"divider"}}}`:                              "uiSchema.status",
		`{"uiSchema":{"version":"2.0","locale":"en","status":"info","root":{"type":"divider"}}}`:                             "uiSchema.theme",
		schema(`{"type":"divider"},"meta":{"requestId":5}`):                                                                  "uiSchema.meta.requestId",
		schema(`{"children":[]}`): "uiSchema.root.type",
		schema(`{"type":"stack","children":[{"type":"text","content":"a"},{"type":"badge","label":"b","status":"fine"}]}`): "uiSchema.root.children[1].status",
		schema(`{"type":"stack","children":[{"type":"stack","children":[{"type":"text","content":7}]}]}`):                  "uiSchema.root.children[0].children[0].content",
		schema(`{"type":"badge"}`):                                          "uiSchema.root.label",
		schema(`{"type":"image","url":"javascript:alert(1)"}`):              "uiSchema.root.url",
		schema(`{"type":"button","label":"x","url":"/relative"}`):           "uiSchema.root.url",
		schema(`{"type":"list","items":{}}`):                                "uiSchema.root.items",
		schema(`{"type":"table","columns":["a"],"rows":[["x"],["x","y"]]}`): "uiSchema.root.rows[1]",
		schema(`{"type":"progress","value":7,"max":3}`):                     "uiSchema.root.value",
		schema(deep): "uiSchema.root" + strings.Repeat(".children[0]", 16),
		schema(many): "uiSchema.root.children[499]",
		schema(`{"type":"text","content":"` + strings.Repeat("x", 70<<10) + `"}`): "uiSchema",
		`{"ui_hints":{"badges":[{"status":"success"}]}}`:                          "ui_hints.badges[0].label",
		`{"ui_hints":{"colour":"red"}}`:                                           "ui_hints.colour",
		`{"ui_hints":{"title":"T"},"uiSchema":` + golden + `}`:                    "ui_hints",
		`{"tool_agent_output":{"ui_hints":{"status":"fine"}}}`:                    "tool_agent_output.ui_hints.status",
	} {
		got, err := card.Compile(json.RawMessage(`{"mood":1,` + details[1:]))
		faults, _ := errors.AsType[event.FieldErrors](err)
		if len(faults) == 0 || faults[0].Field != want {
			t.Errorf("%.200s: %v, want a fault of %s", details, err, want)
		}
		if !strings.HasPrefix(string(got), `{"mood":1`) || strings.Contains(string(got), `"uiSchema"`) {
			t.Errorf("%.200s leaves %.200s", details, got)
		}
	}
}

// FuzzCompile compiles all details. A card without faults is one that Read takes.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"ui_hints":{"status":"error","items":[1,{"label":"a","value":[]}],"progress":"x"}}`))
	f.Add([]byte(`{"uiSchema":` + golden + `}`))
	f.Add([]byte(`{"ui_hints":{}}`))
	f.Add([]byte(`{"ui_hints":{"items":[""],"badges":[""],"image":""}}`))
	f.Fuzz(func(t *testing.T, details []byte) {
		got, err := card.Compile(details)
		var kept map[string]json.RawMessage
		if err != nil || json.Unmarshal(got, &kept) != nil || kept[card.SchemaKey] == nil || string(kept[card.SchemaKey]) == "null" {
			return
		}
		if _, err := card.Read(kept[card.SchemaKey], card.SchemaKey); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	})
}
