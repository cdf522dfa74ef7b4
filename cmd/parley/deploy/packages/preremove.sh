#!/bin/sh
# Before the files are removed. An upgrade lets the daemon run until the new files are there.
set -e

case $1 in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now parley-backup.timer parley.service
	fi
	;;
esac
