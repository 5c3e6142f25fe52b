// Package systemd implements the parts of systemd's protocols that a service uses: sockets that
// systemd opened (sd_listen_fds(3)), notifications of its state (sd_notify(3)) and the watchdog
// (sd_watchdog_enabled(3)). Without systemd all of them do nothing.
package systemd
