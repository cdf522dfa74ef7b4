package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/assembly/workstream"
	"parley/ingest/event"
)

// tool is a function that agents and programs may call. run calls it for the model of a run, and add puts it into the
// server of a request. Both take the arguments that its schema allows.
type tool struct {
	mcp.Tool
	parameters json.RawMessage // the schema of its arguments
	ofRun      bool            // only the agent of a run may call it
	run        func(ctx context.Context, c call, arguments json.RawMessage) (any, error)
	add        func(*mcp.Server, call)
}

// Hints for programs: whether a tool changes something that people see.
var (
	reads = &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}
	acts  = &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)}
)

// schemas are those of the arguments and results of the tools, which are the same in each request.
var schemas = mcp.NewSchemaCache()

// all returns all tools, in the order of their names.
var all = sync.OnceValue(func() []tool {
	artifact := define("read_artifact", workstream.ReadDescription, reads, call.readArtifact)
	artifact.ofRun = true
	list := []tool{
		artifact,
		define("read_thread", "Reads the messages of a thread in their order. Deleted messages have deleted_at and no content.", reads, call.readThread),
		define("list_threads", "Lists the threads of a workspace, the last active first.", reads, call.listThreads),
		define("search_messages", "Finds messages by their words, the newest first. A message is found if it has each word of the query, whole and in any order. It is found a few seconds after it was sent.", reads, call.searchMessages),
		define("find_person", "Finds people and bots that have written in a workspace, the last active first.", reads, call.findPerson),
		define("list_channels", "Lists the channels of a workspace, in the order of their ids.", reads, call.listChannels),
		define("post_message", "Posts a message in a channel, in a thread, or to a person. It is sent soon. Who replies in its thread is answered there.", acts, call.postMessage),
		define("react", "Adds an emoji to a message. A repetition changes nothing.", acts, call.react),
		define("schedule_message", "Has the agent of a thread asked something later, once or by a cron expression. It answers in the thread then; an answer that is exactly NO_REPLY posts nothing. At most 20 schedules of a thread wait.", acts, call.scheduleMessage),
		define("list_schedules", "Lists the schedules of a thread that wait, the next one first.", reads, call.listSchedules),
		define("cancel_schedule", "Ends a schedule of a thread.", acts, call.cancelSchedule),
	}
	slices.SortFunc(list, func(a, b tool) int { return cmp.Compare(a.Name, b.Name) })
	return list
})

// define returns the tool of a function. The type In has the schema of its arguments, so a fault of the schema is one of the program.
func define[In, Out any](name, description string, hints *mcp.ToolAnnotations, serve func(call, context.Context, In) (Out, error)) tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err)
	}
	rules, err := schema.Resolve(nil)
	if err != nil {
		panic(err)
	}
	t := tool{Tool: mcp.Tool{Name: name, Description: description, Annotations: hints, InputSchema: schema}}
	t.parameters, _ = json.Marshal(schema) // a schema of a type always encodes
	t.run = func(ctx context.Context, c call, arguments json.RawMessage) (any, error) {
		var members map[string]any
		if err := json.Unmarshal(arguments, &members); err != nil {
			return nil, wrong(err)
		}
		if err := rules.Validate(members); err != nil {
			return nil, wrong(err)
		}
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, wrong(err)
		}
		return serve(c, ctx, in)
	}
	t.add = func(s *mcp.Server, c call) {
		mcp.AddTool(s, &t.Tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			out, err := serve(c, ctx, in)
			if err != nil {
				err = errors.New(c.explain(err))
			}
			return nil, out, err
		})
	}
	return t
}

// wrong returns the fault of arguments that the schema does not allow, or that are no JSON object.
func wrong(err error) error {
	return event.FieldErrors{{Field: "arguments", Message: err.Error()}}
}
