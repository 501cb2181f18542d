#!/bin/sh
# Before the files go. deb: `remove`, or `upgrade` and others, at which the service stays. rpm: 0, or 1 at an upgrade.
set -e
case "$1" in
    remove | 0)
        if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
            systemctl disable --now tailrace.service
        fi
        ;;
esac
