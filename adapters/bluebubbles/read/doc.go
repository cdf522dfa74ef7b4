// Package read reads a BlueBubbles server: posts of ours whose sending had no clear end, files, and names.
package read
