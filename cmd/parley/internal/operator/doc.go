// Package operator is the operator API of a daemon: operations with typed results, their routes, and
// a client for commands.
//
// [Service] has one method per operation, and is used by the routes and by the console. The routes
// are served on a socket that only the user of the daemon can open ([Listen], [Service.Local]), and
// on a listener whose callers need the token of an operator ([Service.Remote]). A [Client] talks to
// the socket. Without a daemon, it calls the same handlers on the opened store.
//
// # How to add an area
//
// An area, such as dead letters, has one file here, one in the journal's package listing, and one
// in cmd/parley:
//
//  1. listing (reads) or the owner of the table (writes): a bounded query, with a test on both engines.
//  2. here: types with JSON tags, whose names scripts rely on; a method of Service for each operation.
//     A method that changes something takes a [Write] and does its work inside [audited], so that
//     it has an audit row and a repetition gets the first result. Return [Fail] for a refusal, with
//     words that say what to do.
//  3. here: the area's routes, as a variable that [Routes] lists. A route names the least role; its
//     function reads the [Call] and calls the method. A role below [config.RoleReader] gets no text of
//     a direct message.
//  4. here: a method of Client for each operation, by [Get] or [Post].
//  5. adapters/web/openapi.yaml: the route. A test compares.
//  6. cmd/parley: a command that opens a client with operate, and prints a table, or with --json the
//     objects as they are, one a line for a list.
//
// status.go is the model.
package operator
