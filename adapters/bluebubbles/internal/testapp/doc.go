// Package testapp starts the adapter and a fake BlueBubbles server for the tests of all rooms.
package testapp
