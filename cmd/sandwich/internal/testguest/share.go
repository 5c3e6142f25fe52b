package testguest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// findVirtiofsd returns the path of virtiofsd, which distributions install outside PATH.
func findVirtiofsd() (string, error) {
	for _, name := range []string{"virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", &MissingError{"virtiofsd is not installed", "install Debian's qemu-system-common or virtiofsd"}
}

// serveShares starts a server for each share and returns their sockets, which are in folder. stop
// ends the servers; it must be called also after an error, when the guest has ended.
func serveShares(ctx context.Context, shares []Share, virtiofsd, folder string) (sockets []string, stop func(),
	err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running []*exec.Cmd
	stop = func() {
		cancel()
		for _, cmd := range running {
			_ = cmd.Wait()
		}
	}
	for _, s := range shares {
		socket := filepath.Join(folder, s.Tag+".socket")
		cmd, err := serveShare(ctx, s, virtiofsd, socket)
		if err != nil {
			return nil, stop, err
		}
		running = append(running, cmd)
		sockets = append(sockets, socket)
	}
	return sockets, stop, nil
}

// serveShare starts the server of a share. It hands over a socket that listens already, so that
// qemu can connect at once. The default sandbox cannot serve the root of the host.
func serveShare(ctx context.Context, s Share, virtiofsd, socket string) (*exec.Cmd, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, virtiofsd, "--fd=3", "-o", "source="+s.Folder, "-o", "cache=auto",
		"-o", "sandbox=chroot")
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}
