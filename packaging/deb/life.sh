#!/bin/sh
# The package's life in a bare Debian that is thrown away: installed, upgraded, removed, purged. Needs root and debootstrap.
#   packaging/deb/life.sh FIRST.deb SECOND.deb
# BASE=folder: a Debian made before by debootstrap, which is copied.
set -eu
first=$(realpath "$1")
second=$(realpath "$2")
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
if [ -n "${BASE:-}" ]; then
    cp -a "$BASE/." "$root"
else
    debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1 || { cat "$root.log"; exit 1; }
    rm "$root.log"
fi
mount -t proc proc "$root/proc"
cp "$first" "$root/first.deb"
cp "$second" "$root/second.deb"

in_it() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
ok() { echo "ok   $1"; }
fail() { echo "FAIL $1"; exit 1; }
version() { in_it dpkg-query -W -f '${Version}' inprofiled; }

in_it find / -xdev -not -path '/proc/*' -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' -not -path '/var/cache/*' \
    -not -path '/etc/*-' -not -path '/tmp/*' -not -path '/run/*' | sort >"$root/../before.$$"
in_it dpkg -i /first.deb >"$root/dpkg.log" 2>&1 || { cat "$root/dpkg.log"; fail "it can't be installed"; }
rm "$root/dpkg.log"
ok "installed: $(version)"
in_it getent passwd inprofiled | grep -q '/usr/sbin/nologin$' || fail "the user"
ok "the user: $(in_it getent passwd inprofiled)"
in_it inprofiled --version >/dev/null || fail "the program"
in_it inprofiled check /etc/inprofiled.toml >/dev/null 2>&1 || fail "the file it comes with"
ok "the program runs, and takes the file it comes with"
for file in /usr/lib/systemd/system/inprofiled.service /etc/logrotate.d/inprofiled /usr/share/man/man1/inprofiled.1.gz \
    /usr/share/man/man1/inprofiled-top.1.gz /usr/share/bash-completion/completions/inprofiled \
    /usr/share/zsh/vendor-completions/_inprofiled /usr/share/fish/vendor_completions.d/inprofiled.fish \
    /usr/share/doc/inprofiled/copyright /usr/share/doc/inprofiled/monitoring/alerts.yml; do
    [ -s "$root$file" ] || fail "$file is missing"
done
ok "unit, log rotation, man pages, completions, rules"
! in_it dpkg --verify inprofiled | grep . || fail "files differ from the package's"
dpkg-deb -f "$first" Maintainer | grep -qx 'Inprofile contributors' || fail "the maintainer"
ok "the maintainer: $(dpkg-deb -f "$first" Maintainer)"

sed -i 's/lan0/eth7/' "$root/etc/inprofiled.toml"
mkdir -p "$root/var/log/inprofiled"
echo a line >"$root/var/log/inprofiled/inprofiled.log"
in_it dpkg --force-confdef --force-confold -i /second.deb >/dev/null 2>&1 || fail "it can't be upgraded"
ok "upgraded: $(version)"
grep -q eth7 "$root/etc/inprofiled.toml" || fail "what was edited is lost"
ok "what was edited is kept"
in_it dpkg --remove inprofiled >/dev/null 2>&1 || fail "it can't be removed"
[ ! -e "$root/usr/bin/inprofiled" ] && grep -q eth7 "$root/etc/inprofiled.toml" && [ -s "$root/var/log/inprofiled/inprofiled.log" ] ||
    fail "removed: the program goes, what is ours stays"
ok "removed: the program is gone, file and log stay"
in_it dpkg --purge inprofiled >/dev/null 2>&1 || fail "it can't be purged"
in_it find / -xdev -not -path '/proc/*' -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' -not -path '/var/cache/*' \
    -not -path '/etc/*-' -not -path '/tmp/*' -not -path '/run/*' | sort >"$root/../after.$$"
left=$(comm -13 "$root/../before.$$" "$root/../after.$$")
rm -f "$root/../before.$$" "$root/../after.$$"
[ -z "$left" ] || fail "purged, and this is left: $left"
[ ! -e "$root/var/log/inprofiled" ] && [ ! -e "$root/run/inprofiled" ] || fail "logs or notes are left"
! in_it getent passwd inprofiled || fail "the user is left"
ok "purged: nothing is left"
echo done
