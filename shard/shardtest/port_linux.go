package shardtest

import "golang.org/x/sys/unix"

// holdPort takes a port of 127.0.0.1 that nobody has, and keeps it from all
// others until release is called, also while the server that it is for is down:
// a socket that is bound and never listens. Bound without SO_REUSEADDR, it is
// refused where anybody has the port; with it from then on, it lets in those
// that set it as well and listen, as Redis does, and none that hold ports so.
func holdPort(port int) (release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return func() { unix.Close(fd) }, nil
}
