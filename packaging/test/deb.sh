#!/bin/sh
# Installs the Debian package of a release in a fresh chroot of Debian, serves as its user, upgrades, removes and purges it.
# Usage: deb.sh RELEASE_FOLDER [CHROOT]. Needs root, debootstrap and a Debian mirror; skipped by name without them.
set -eu
release=$1
chroot=${2:-}
fail() {
	echo "FAIL: $*" >&2
	exit 1
}
skip() {
	echo "skipped: test-deb ($*)"
	exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
arch=$(dpkg --print-architecture)
package=$(ls "$release"/sandwich_*_"$arch".deb 2>/dev/null | tail -1)
[ -n "$package" ] || fail "no package for $arch in $release; run make release first"

made=
cleanup() {
	for m in proc sys dev; do
		umount "$chroot/$m" 2>/dev/null || true
	done
	if [ -n "$made" ]; then
		rm -rf --one-file-system "$made"
	fi
}
trap cleanup EXIT
if [ -z "$chroot" ]; then
	made=$(mktemp -d)
	chmod 755 "$made" # the root of the chroot, which all users enter
	chroot=$made
fi
if [ ! -x "$chroot/bin/sh" ]; then
	debootstrap --variant=minbase --include=systemd,procps,curl bookworm "$chroot" >"$chroot.log" 2>&1 || {
		tail -5 "$chroot.log"
		rm -f "$chroot.log"
		skip "debootstrap failed: no Debian mirror"
	}
	rm -f "$chroot.log"
fi
mount -t proc proc "$chroot/proc"
mount -t sysfs -o ro sys "$chroot/sys"
mount --bind /dev "$chroot/dev"
inside() { chroot "$chroot" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }
as_user() {
	inside setpriv --reuid sandwich --regid sandwich --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
		env SANDWICH_CONFIG=/etc/sandwich/config.yaml XDG_DATA_HOME=/var/lib XDG_CACHE_HOME=/var/cache "$@"
}
files() { inside find / -xdev \( -path /proc -o -path /run/systemd -o -path /sys -o -path /dev -o -path /var/log -o -path /var/lib/dpkg -o -path /tmp \
	-o -path /var/cache/ldconfig \) -prune -o -print | sort; }

inside groupdel sandwich 2>/dev/null || true
cp "$package" "$chroot/tmp/sandwich.deb"
before=$(files)
accounts=$(inside cat /etc/passwd /etc/group)

echo "== install"
inside dpkg -i /tmp/sandwich.deb
inside sandwich version
inside dpkg --verify sandwich
[ "$(inside stat -c %U:%a /etc/sandwich/config.yaml)" = root:644 ] || fail "owner or mode of config.yaml"
inside getent passwd sandwich | grep -q ':/usr/sbin/nologin$' || fail "the account sandwich is missing or has a shell"
inside systemd-analyze verify --man=no /usr/lib/systemd/system/sandwich.service
inside systemd-analyze security --offline=yes --no-pager sandwich.service | tail -1
inside systemctl enable sandwich.service

echo "== serve as the user of the service"
inside install -d -o sandwich -g sandwich -m 750 /var/lib/sandwich /var/cache/sandwich
port=$((20000 + $$ % 10000))
echo "listen: 127.0.0.1:$port" >"$chroot/tmp/changed"
sed -i "s/^listen: .*/listen: 127.0.0.1:$port/" "$chroot/etc/sandwich/config.yaml"
as_user sandwich serve >"$chroot/tmp/serve.log" 2>&1 &
server=$!
for _ in $(seq 300); do
	as_user sandwich health >/dev/null 2>&1 && break
	kill -0 $server 2>/dev/null || break
	sleep 0.2
done
as_user sandwich health || {
	cat "$chroot/tmp/serve.log"
	fail "the server is not healthy"
}
inside curl -sf "http://127.0.0.1:$port/v1/completions" -H 'Content-Type: application/json' \
	-d '{"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}' | grep -q '"text"' || fail "no completion"
grep -q "no executable memory" "$chroot/tmp/serve.log" && fail "the kernels were not generated"
pid=$(pgrep -P $server sandwich || echo $server)
kill -TERM "$pid"
wait $server || true
as_user sandwich health --timeout 1s 2>/dev/null && fail "the server still answers"

echo "== upgrade keeps the configuration"
inside dpkg -i /tmp/sandwich.deb
grep -q "^listen: 127.0.0.1:$port" "$chroot/etc/sandwich/config.yaml" || fail "the upgrade replaced config.yaml"

echo "== remove keeps configuration and data, purge leaves nothing"
inside dpkg -r sandwich
[ -f "$chroot/etc/sandwich/config.yaml" ] && [ -d "$chroot/var/lib/sandwich" ] || fail "remove deleted configuration or data"
[ ! -e "$chroot/etc/systemd/system/multi-user.target.wants/sandwich.service" ] || fail "the service is still enabled"
inside dpkg -P sandwich
after=$(files)
if [ "$before" != "$after" ]; then
	echo "$before" >"$chroot/tmp/before"
	echo "$after" | diff "$chroot/tmp/before" - || true
	fail "purge left files"
fi
[ "$accounts" = "$(inside cat /etc/passwd /etc/group)" ] || fail "purge left accounts"
echo "ok: test-deb"
