#!/bin/sh
# After the files went. deb: `purge` takes the progress too; `remove` and the rpm leave it, so that a later installation
# continues. The account stays: files may still be its own.
set -e
root="${DPKG_ROOT:-}"
if [ "$1" = purge ]; then
    rm -rf "$root/var/lib/tailrace" "$root/var/lib/private/tailrace"
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
