package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A proxy stands between the clients of a node and its server, and passes everything on until it is told otherwise.
type proxy struct {
	addr, server string
	opaque       bool // TLS: nothing in it can be told apart

	mu       sync.Mutex
	listener net.Listener // nil while cut
	links    map[*link]struct{}
	gate     chan struct{} // closed while traffic may pass
	stalled  bool
	closed   bool
	wg       sync.WaitGroup // of all goroutines

	delay   atomic.Int64 // nanoseconds, each way
	swallow atomic.Pointer[func(message []byte) bool]
}

func newProxy(addr, server string, opaque bool) (*proxy, error) {
	p := &proxy{addr: addr, server: server, opaque: opaque, links: map[*link]struct{}{}, gate: make(chan struct{})}
	close(p.gate)
	return p, p.listen()
}

// listen accepts clients until the listener is closed.
func (p *proxy) listen() error {
	l, err := net.Listen("tcp", p.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("harness: listen for clients: %w: %w", err, ErrAddrInUse)
	}
	if err != nil {
		return fmt.Errorf("harness: listen for clients: %w", err)
	}
	p.listener = l
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(l, client.(*net.TCPConn)) })
		}
	})
	return nil
}

func (p *proxy) serve(from net.Listener, client *net.TCPConn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		reset(client) // of a dead server this is all that a proxy can show
		return
	}
	l := &link{p: p, client: client, server: server.(*net.TCPConn), done: make(chan struct{})}
	l.opaque.Store(p.opaque)
	p.mu.Lock()
	current := p.listener == from // not cut since the client came
	if current {
		p.links[l] = struct{}{}
	}
	p.mu.Unlock()
	if current {
		l.run()
	}
	l.end()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// cut resets every connection and refuses new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.end()
	}
}

// stall keeps every connection and passes nothing on.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stalled {
		p.stalled, p.gate = true, make(chan struct{})
	}
}

func (p *proxy) mend() error {
	p.delay.Store(0)
	p.swallow.Store(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled {
		p.stalled = false
		close(p.gate)
	}
	if p.listener != nil || p.closed {
		return nil
	}
	// While it was cut somebody's outgoing connection may have been given the port.
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := p.listen(); !errors.Is(err, ErrAddrInUse) || time.Now().After(deadline) {
			return err
		}
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true // before the cut, so that no mend comes between
	p.mu.Unlock()
	p.cut()
	p.wg.Wait()
}

// proxies are closed together.
type proxies struct {
	mu     sync.Mutex
	all    []*proxy
	closed bool
}

// add returns false after close.
func (p *proxies) add(one *proxy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.all = append(p.all, one)
	}
	return !p.closed
}

func (p *proxies) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, one := range p.all {
		one.close()
	}
	p.all = nil
}

func (p *proxy) open() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gate
}

// A link is one client's connection and the one to the server that belongs to it.
type link struct {
	p              *proxy
	client, server *net.TCPConn

	// opaque is set when the client is a replica: what it is sent from then on is not made of replies. With TLS nothing is.
	opaque atomic.Bool

	once sync.Once
	done chan struct{} // closed when the link is at its end
}

// end resets both connections.
func (l *link) end() {
	l.once.Do(func() {
		close(l.done)
		reset(l.client)
		reset(l.server)
	})
}

func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// A parcel is what was read at once, and is to be written when it is due.
type parcel struct {
	data []byte
	due  time.Time
}

// run passes on in both directions until the server has closed the connection, or either side has failed. A client may be done with
// sending and still want its replies; a server never is.
func (l *link) run() {
	var wg sync.WaitGroup
	pass := func(to *net.TCPConn, read func(chan<- parcel), atEnd func()) {
		parcels := make(chan parcel, 256)
		wg.Go(func() {
			defer close(parcels)
			read(parcels)
		})
		wg.Go(func() {
			for p := range parcels {
				if !l.wait(p.due) {
					continue // drain, so that the reader is not stuck
				}
				if _, err := to.Write(p.data); err != nil {
					l.end()
				}
			}
			atEnd()
		})
	}
	pass(l.server, l.readCommands, func() { l.server.CloseWrite() })
	pass(l.client, l.readReplies, l.close)
	wg.Wait()
}

// close closes both connections in order, so that the client gets what was sent before.
func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		l.client.Close()
		l.server.Close()
	})
}

// wait returns true when a parcel may be written, and false when the link has ended.
func (l *link) wait(due time.Time) bool {
	if d := time.Until(due); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-l.done:
			return false
		}
	}
	select {
	case <-l.p.open():
		return true
	case <-l.done:
		return false
	}
}

func (l *link) send(to chan<- parcel, data []byte) {
	p := parcel{data: data}
	if d := l.p.delay.Load(); d > 0 {
		p.due = time.Now().Add(time.Duration(d))
	}
	to <- p
}

const chunk = 32 << 10

func (l *link) readCommands(to chan<- parcel) {
	for {
		buf := make([]byte, chunk)
		n, err := l.client.Read(buf)
		if n > 0 {
			if bytes.Contains(buf[:n], []byte("\r\nPSYNC\r\n")) || bytes.Contains(buf[:n], []byte("\r\nSYNC\r\n")) {
				l.opaque.Store(true)
			}
			l.send(to, buf[:n])
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				l.end()
			}
			return
		}
	}
}

// readReplies reads whole messages, so that single ones can be swallowed. Messages that came together go on together.
func (l *link) readReplies(to chan<- parcel) {
	r := bufio.NewReaderSize(l.server, chunk)
	var out []byte
	for !l.opaque.Load() {
		start := len(out)
		var err error
		out, err = appendMessage(out, r)
		if err != nil {
			// Not RESP after all, or the end: what was read of it is passed on as it is.
			l.send(to, out)
			if errors.Is(err, errNotRESP) {
				out = nil
				break
			}
			return
		}
		if swallow := l.p.swallow.Load(); swallow != nil && (*swallow)(bytes.Clone(out[start:])) {
			out = out[:start]
		}
		if len(out) > 0 && (r.Buffered() == 0 || len(out) >= chunk) {
			l.send(to, out)
			out = nil
		}
	}
	if len(out) > 0 {
		l.send(to, out)
	}
	for {
		buf := make([]byte, chunk)
		n, err := r.Read(buf)
		if n > 0 {
			l.send(to, buf[:n])
		}
		if err != nil {
			return
		}
	}
}

var errNotRESP = errors.New("not RESP")

// appendMessage appends one whole message of RESP2 or RESP3, as it is, to dst. After an error it has appended what it has read.
func appendMessage(dst []byte, r *bufio.Reader) ([]byte, error) {
	for left := 1; left > 0; left-- {
		start := len(dst)
		for { // ReadSlice, again and again, where a line is longer than the buffer
			line, err := r.ReadSlice('\n')
			dst = append(dst, line...)
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return dst, err
			}
		}
		line := dst[start:]
		if len(line) < 3 || line[len(line)-2] != '\r' {
			return dst, errNotRESP
		}
		switch line[0] {
		case '+', '-', ':', '_', '#', ',', '(':
			continue
		}
		n, ok := length(line[1 : len(line)-2])
		if !ok {
			return dst, errNotRESP
		}
		switch line[0] {
		case '$', '!', '=':
			if n >= 0 {
				at := len(dst)
				dst = append(dst, make([]byte, n+2)...)
				got, err := io.ReadFull(r, dst[at:])
				if err != nil {
					return dst[:at+got], err
				}
			}
		case '*', '~', '>':
			left += max(n, 0)
		case '%':
			left += 2 * n
		case '|': // an attribute comes before what it is about
			left += 2*n + 1
		default:
			return dst, errNotRESP
		}
	}
	return dst, nil
}

func length(digits []byte) (n int, ok bool) {
	if string(digits) == "-1" {
		return -1, true
	}
	for _, d := range digits {
		if d < '0' || d > '9' || n > 512<<20 {
			return 0, false
		}
		n = 10*n + int(d-'0')
	}
	return n, len(digits) > 0
}
