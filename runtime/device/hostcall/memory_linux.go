package hostcall

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mappedPage is the largest page size of the supported systems.
const mappedPage = 64 << 10

// createMemfd creates an anonymous file. Tests replace it.
var createMemfd = unix.MemfdCreate

// sharedFile creates a file of size bytes for shared memory: an anonymous file, or an unlinked one
// where anonymous files are forbidden. The file cannot shrink if it is anonymous, so that the child
// cannot make the caller's accesses fail.
func sharedFile(size int) (*os.File, error) {
	const noExecSeal = 0x8 // MFD_NOEXEC_SEAL, Linux 6.3
	fd, err := createMemfd("sandwich-shared", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|noExecSeal)
	if errors.Is(err, unix.EINVAL) {
		fd, err = createMemfd("sandwich-shared", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return unlinkedFile(size, err)
	}
	f := os.NewFile(uintptr(fd), "sandwich-shared")
	if err := f.Truncate(int64(size)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("seal shared memory: %w", err), f.Close())
	}
	return f, nil
}

// unlinkedFile creates shared memory in /dev/shm. cause is why an anonymous file was refused.
func unlinkedFile(size int, cause error) (*os.File, error) {
	f, err := os.CreateTemp("/dev/shm", "sandwich-*")
	if err != nil {
		return nil, fmt.Errorf("no shared memory: anonymous file: %w; /dev/shm: %w", cause, err)
	}
	if err := errors.Join(os.Remove(f.Name()), f.Truncate(int64(size))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mapShared maps the file at the address, or returns an error if the range is in use.
func mapShared(f *os.File, at uintptr, size int) (unsafe.Pointer, error) {
	hint := *(*unsafe.Pointer)(unsafe.Pointer(&at)) // an address without memory: no pointer arithmetic
	got, err := unix.MmapPtr(int(f.Fd()), 0, hint, uintptr(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		return nil, err
	}
	if uintptr(got) != at { // before Linux 4.17 the flag is a hint
		return nil, errors.Join(unix.EEXIST, unix.MunmapPtr(got, uintptr(size)))
	}
	return got, nil
}

func unmapShared(at unsafe.Pointer, size int) error { return unix.MunmapPtr(at, uintptr(size)) }

// socketPair returns the ends of a connection over which files can be sent.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "sandwich-socket"), os.NewFile(uintptr(fds[1]), "sandwich-socket"), nil
}

// sendFile sends a descriptor of the file.
func sendFile(socket, file *os.File) error {
	return unix.Sendmsg(int(socket.Fd()), []byte{0}, unix.UnixRights(int(file.Fd())), nil, unix.MSG_NOSIGNAL)
}

// receiveTimeout bounds the wait for a descriptor that the child has sent already.
const receiveTimeout = 5 * time.Second

// receiveFile receives a file that was sent over the socket.
func receiveFile(socket *os.File) (*os.File, error) {
	fd := int(socket.Fd())
	wait := unix.NsecToTimeval(int64(receiveTimeout))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, err
	}
	control := make([]byte, 2*unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // of another kind
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "driver memory"))
		}
	}
	if len(files) != 1 {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, fmt.Errorf("the message has %d files", len(files))
	}
	return files[0], nil
}

// mapReceived maps a file of the child and returns its size. It refuses a file that the child can
// shorten, which would make accesses of this process fail.
func mapReceived(f *os.File) (at unsafe.Pointer, size int, err error) {
	link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, 0, err
	}
	if !strings.Contains(link, "dmabuf") { // the size of those is fixed
		seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
		if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
			return nil, 0, fmt.Errorf("the file %s can be shortened", link)
		}
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end <= 0 || end > 1<<48 {
		return nil, 0, fmt.Errorf("the file %s has %d bytes: %w", link, end, err)
	}
	at, err = unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(end), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return at, int(end), err
}

// futexWait sleeps while *word is value, at most for the duration. It may return early.
func futexWait(word *uint32, value uint32, d time.Duration) {
	limit := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), 0, uintptr(value),
		uintptr(unsafe.Pointer(&limit)), 0, 0)
}

// futexWake wakes all processes that sleep on word.
func futexWake(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), 1, 1<<30, 0, 0, 0)
}
