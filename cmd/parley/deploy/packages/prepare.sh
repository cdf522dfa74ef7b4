#!/bin/sh
# Makes what a package has beside the program: manual pages, completions, and the licenses of the libraries.
# packages/prepare.sh DIR, in the source; Go builds the program for this machine.
set -eu
out=$1
rm -rf "$out"
mkdir -p "$out/man" "$out/completions"
go build -o "$out/parley" ./cmd/parley
"$out/parley" man "$out/man"
gzip -9n "$out"/man/*.1
for shell in bash zsh fish; do
	"$out/parley" completion $shell >"$out/completions/parley.$shell"
done
rm "$out/parley"
# One license file may be part of another's package, so each module is named with all of its own.
go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/parley | sort -u | while read -r module version dir; do
	echo "== $module $version"
	find "$dir" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents*' \) | sort | while read -r file; do
		echo
		cat "$file"
	done
	echo
done >"$out/NOTICES"
