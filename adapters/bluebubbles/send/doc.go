// Package send posts messages by a BlueBubbles server, and shows that the agent works.
package send
