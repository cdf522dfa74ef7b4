// Package testapp serves the tests of every room. It starts an adapter with its fake Discord, and
// records the fake's calls and the adapter's reports.
package testapp
