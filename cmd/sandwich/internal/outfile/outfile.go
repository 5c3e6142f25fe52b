// Package outfile writes the files that users name on the command line. Regular files appear whole,
// as package retention writes them; pipes and character devices are written as data comes.
package outfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"sandwich/profiles/retention"
)

// File is an output that has not been committed yet.
type File struct {
	io.Writer
	whole  *retention.File // nil for a stream
	stream *stream         // nil for a regular file
}

// Create starts an output that Commit completes. A regular file, or one that does not exist, keeps
// what it holds until then. A pipe, a character device or an open descriptor (/dev/stdout) is
// written as data comes; a pipe is opened when a process reads it, or until ctx ends. Folders,
// sockets and block devices are refused.
func Create(ctx context.Context, path string) (*File, error) {
	if streams(path) {
		s, err := openStream(ctx, path)
		if err != nil {
			return nil, err
		}
		return &File{Writer: s, stream: s}, nil
	}
	f, err := retention.Create(path)
	if err != nil {
		return nil, err
	}
	return &File{Writer: f, whole: f}, nil
}

// Write writes an output by a function. If the function fails, a regular file keeps what it held.
func Write(ctx context.Context, path string, write func(w io.Writer) error) error {
	f, err := Create(ctx, path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// Commit completes the output.
func (f *File) Commit() error {
	if f.stream != nil {
		return f.stream.close()
	}
	return f.whole.Commit()
}

// Abort drops a regular file that was not committed, and closes a stream. After Commit it does
// nothing.
func (f *File) Abort() {
	if f.stream != nil {
		_ = f.stream.close()
		return
	}
	f.whole.Abort()
}

// streams reports whether path is written as data comes.
func streams(path string) bool {
	st, err := os.Stat(path)
	return err == nil && (streamable(st.Mode()) || st.Mode().IsRegular() && descriptor(path))
}

func streamable(mode fs.FileMode) bool { return mode&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 }

// descriptor reports whether path names an open descriptor, as /dev/stdout does.
func descriptor(path string) bool {
	_, err := retention.Resolve(path)
	return errors.Is(err, retention.ErrNotRegular)
}

// stream is an open pipe or device.
type stream struct {
	file *os.File
	ctx  context.Context // its end interrupts writes to a pipe
	stop func() bool
}

func openStream(ctx context.Context, path string) (*stream, error) {
	f, err := openWriter(ctx, path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !streamable(st.Mode()) && !descriptor(path) {
		err = fmt.Errorf("%s was replaced while it was opened; try again", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) }) // devices have none
	return &stream{file: f, ctx: ctx, stop: stop}, nil
}

// readerWait is the time between two attempts to open a pipe that no process reads.
const readerWait = 20 * time.Millisecond

// openWriter opens a pipe, device or descriptor for writing. Opening a pipe without O_NONBLOCK
// would wait for a reader and could not be interrupted. Only a pipe with a name can get a reader.
func openWriter(ctx context.Context, path string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_APPEND | syscall.O_NOCTTY
	for {
		if !isPipe(path) {
			return os.OpenFile(path, flags, 0)
		}
		f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) || descriptor(path) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: no process reads this pipe: %w", path, context.Cause(ctx))
		case <-time.After(readerWait):
		}
	}
}

func isPipe(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&fs.ModeNamedPipe != 0
}

// Write writes to the stream until its context ends.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if err != nil && s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	return n, err
}

func (s *stream) close() error {
	if s.file == nil {
		return nil
	}
	s.stop()
	err := s.file.Close()
	s.file = nil
	return err
}
