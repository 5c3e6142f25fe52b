#!/bin/sh
# Boots a Debian guest with systemd and the package of a release, checks the service under the sandbox of its unit, reboots
# the guest and checks again. Usage: guest.sh RELEASE_FOLDER [CHROOT]. Needs root, debootstrap, a Debian mirror, cpio,
# qemu-system-x86_64 and a kernel (SANDWICH_GUEST_KERNEL_AMD64, else the newest of /boot); skipped by name without them.
# The root of the guest is its initramfs, so that no kernel module, disk or boot loader is needed.
set -eu
release=$1
chroot=${2:-}
limit=${GUEST_SECONDS:-900}
fail() {
	echo "FAIL: $*" >&2
	exit 1
}
skip() {
	echo "skipped: test-guest ($*)"
	exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ "$(uname -m)" = x86_64 ] || skip "needs an amd64 host"
for tool in debootstrap cpio qemu-system-x86_64; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
kernel=${SANDWICH_GUEST_KERNEL_AMD64:-$(ls -t /boot/vmlinuz* 2>/dev/null | head -1)}
[ -f "$kernel" ] || skip "no kernel in /boot and SANDWICH_GUEST_KERNEL_AMD64 is not set"
package=$(ls "$release"/sandwich_*_amd64.deb 2>/dev/null | tail -1)
[ -n "$package" ] || fail "no package for amd64 in $release; run make release first"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
if [ -n "$chroot" ]; then
	cp -a --one-file-system "$chroot" "$root"
else
	debootstrap --variant=minbase --include=systemd,procps,curl bookworm "$root" >"$work/log" 2>&1 || {
		tail -5 "$work/log"
		skip "debootstrap failed: no Debian mirror"
	}
fi
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/locale "$root"/usr/share/doc
cp "$package" "$root/tmp/sandwich.deb"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"; }
inside dpkg -i /tmp/sandwich.deb
rm "$root/tmp/sandwich.deb"
ln -sf /lib/systemd/systemd "$root/init"
cat >"$root/usr/local/bin/check" <<'CHECK'
#!/bin/sh
# Runs in the guest. Prints one line CHECK-OK, or CHECK-FAIL with a reason.
fail() {
	journalctl -u sandwich --no-pager -n 30
	echo "CHECK-FAIL $*"
	systemctl poweroff
	exit 1
}
export SANDWICH_CONFIG=/etc/sandwich/config.yaml
for _ in $(seq 600); do
	sandwich health && break
	sleep 1
done
sandwich health || fail "the server is not healthy"
curl -sf http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' \
	-d '{"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}' | grep '"text"' || fail "no completion"
pid=$(systemctl show -p MainPID --value sandwich)
[ "$(systemctl show -p MemoryDenyWriteExecute --value sandwich)" = yes ] || fail "MemoryDenyWriteExecute is off"
grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$pid/status"
grep -q '^CapEff:[[:space:]]*0*$' "/proc/$pid/status" || fail "the service has capabilities"
grep -q "^Uid:[[:space:]]*$(id -u sandwich)" "/proc/$pid/status" || fail "the service runs as another user"
grep -q 'r-xs.*memfd:sandwich-kernels' "/proc/$pid/maps" || fail "no generated kernels are mapped"
grep -q ' rwx' "/proc/$pid/maps" && fail "memory is writable and executable"
journalctl -u sandwich --no-pager | grep 'no executable memory' && fail "the kernels were not generated"
systemctl reload sandwich || fail "reload"
systemctl restart sandwich || fail "restart"
echo "CHECK-OK $(systemctl show -p Type,MainPID sandwich | tr '\n' ' ')"
systemctl reboot
CHECK
chmod 755 "$root/usr/local/bin/check"
cat >"$root/etc/systemd/system/check.service" <<'UNIT'
[Unit]
After=sandwich.service
[Service]
Type=oneshot
ExecStart=/usr/local/bin/check
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
UNIT
inside systemctl enable sandwich.service check.service
inside systemctl mask getty@tty1.service serial-getty@ttyS0.service systemd-networkd-wait-online.service
inside systemctl set-default multi-user.target
(cd "$root" && find . -xdev | cpio -o -H newc --quiet) | gzip -1 >"$work/initramfs"
rm -rf "$root"

# The guest is emulated unless GUEST_KVM is set: nested virtualization does not run everywhere.
accel="-accel tcg"
if [ -n "${GUEST_KVM:-}" ]; then
	accel="-accel kvm"
fi
console=$work/console
: >"$console"
timeout "$limit" qemu-system-x86_64 -nodefaults -no-user-config -display none -machine q35 $accel -cpu max,arch-capabilities=off -smp 2 \
	-m 3072 -serial "file:$console" -kernel "$kernel" -initrd "$work/initramfs" \
	-append "console=ttyS0 earlyprintk=serial panic=-1 rdinit=/init systemd.journald.forward_to_console=0" &
qemu=$!
checks() { grep -a -c "$1" "$console" || true; }
while kill -0 $qemu 2>/dev/null && [ "$(checks CHECK-OK)" -lt 2 ] && [ "$(checks CHECK-FAIL)" = 0 ]; do
	sleep 1
done
kill $qemu 2>/dev/null || true
wait $qemu || true
grep -a -E 'CHECK-|CapEff|Seccomp|NoNewPrivs|"text"' "$console" || true
if [ "$(checks CHECK-OK)" -lt 2 ]; then
	tail -40 "$console"
	fail "the guest did not pass the checks of two boots within $limit s"
fi
echo "ok: test-guest"
