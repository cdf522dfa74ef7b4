#!/bin/sh
# After the files are removed. The conversations and the backups stay, and so does the user who owns them.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /etc/parley
	rmdir --ignore-fail-on-non-empty /var/lib/parley /var/backups/parley 2>/dev/null || true
	if [ -d /var/lib/parley ]; then
		echo "The conversations are still in /var/lib/parley. Remove them by hand."
	fi
fi
