// Package testapp serves the tests of every room. It starts an adapter with its fake Slack, and
// records the adapter's reports.
package testapp
