#!/bin/sh
# After the files are there. Arguments: of dpkg "configure" and the version before, of rpm the number of installed versions.
set -e

case $1 in
configure) before=$2 ;;
1) before= ;;
[2-9]*) before=yes ;;
*) exit 0 ;;
esac

if ! getent passwd parley >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/parley --no-create-home --shell /usr/sbin/nologin --comment Parley parley
fi
# parley init runs as the user parley and writes into this folder. The unit shows it to the daemon read-only.
# The folder is root's, with the sticky bit: the user parley may add files, and cannot replace those of root.
chown root:parley /etc/parley
chmod 1770 /etc/parley
chown parley:parley /var/lib/parley /var/backups/parley
chmod 0700 /var/lib/parley /var/backups/parley
# systemd reads the secrets of env as root. The package has put the file there as root's. One that somebody else has
# put in its place may lead to any file of the machine, so nothing is changed through it.
if [ -L /etc/parley/env ] || { [ -e /etc/parley/env ] && [ "$(stat -c %U /etc/parley/env)" != root ]; }; then
	echo "/etc/parley/env is not a file of root, and systemd would read it: look at it, remove it, and install again" >&2
	exit 1
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -n "$before" ]; then
		systemctl try-restart parley.service
	fi
fi
if [ -z "$before" ] && ! [ -e /etc/parley/parley.yaml ]; then
	cat <<'WORDS'
Parley is installed, and does not run without a configuration. As root:
  runuser -u parley -- parley init --dir /etc/parley --data /var/lib/parley
  systemctl enable --now parley.service parley-backup.timer
WORDS
fi
