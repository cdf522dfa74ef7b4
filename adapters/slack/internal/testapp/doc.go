// Package testapp has what the tests of every room need: an adapter with its fake Slack, and a
// recorder of its reports.
package testapp
