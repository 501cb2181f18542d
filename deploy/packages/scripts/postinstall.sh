#!/bin/sh
# After the files are there. deb: `configure`, and the version before if there was one. rpm: 1, or 2 for an upgrade.
# Neither enables nor starts the service: the config that comes with it is an example.
set -e
root="${DPKG_ROOT:-}"

if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers --root="${root:-/}" tailrace.conf
elif ! grep -q '^tailrace:' "$root/etc/passwd" 2>/dev/null; then
    useradd --prefix "${root:-/}" --system --user-group --groups adm --home-dir /var/lib/tailrace --no-create-home \
        --shell /usr/sbin/nologin --comment "Tailrace log agent" tailrace
fi

is_upgrade=no
case "$1" in
    configure) [ -z "$2" ] || is_upgrade=yes ;;
    2) is_upgrade=yes ;;
esac

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if [ "$is_upgrade" = yes ]; then
        # It continues where it stopped; a stopped service stays stopped.
        systemctl try-restart tailrace.service
    fi
fi
if [ "$is_upgrade" = no ]; then
    echo "tailrace: edit /etc/tailrace/tailrace.yaml, then run: systemctl enable --now tailrace"
fi
