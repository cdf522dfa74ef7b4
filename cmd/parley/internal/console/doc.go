// Package console is the operator's web console: pages of HTML over the operator API.
//
// A page is a row of the table in pages.go, a function that reads the operator's service and a
// template. The server renders each page, and the page is complete without a script. If the
// browser runs the script, the page also follows the store: live.go renders the page again and
// sends each element with the attribute data-live that changed.
//
// An operation is a form that names what people in the chat will see. It reaches the service
// as a call of the operator API does, with the operator's name and note.
package console
