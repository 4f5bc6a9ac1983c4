package harness

import "context"

// A Provider can start servers: processes of this machine, containers, or what an author adds. It knows nothing of
// clusters: the harness decides on ports, flags and files, and a provider runs servers with them.
//
// Its methods may be called concurrently.
type Provider interface {
	// Open finds out whether servers can be had, without starting any. The Launcher is for one cluster or one
	// group of shards, and for one attempt at it: after a failed start it is closed and another is opened.
	//
	// An error that wraps ErrNoServer means that there is nothing to be had here, and the next provider is asked. It
	// says what was looked for and what would help. Any other error ends the start.
	Open(ctx context.Context, o Options) (Launcher, error)
}

// A Launcher runs the servers of one cluster or of one group of shards.
type Launcher interface {
	// Describe says where the servers come from, given their version as they report it:
	// "process: redis-server 7.0.15 (/usr/bin/redis-server)".
	Describe(v Version) string

	// Version finds out what the servers will be, before there are any: what is written into their files depends on it.
	Version(ctx context.Context) (Version, error)

	// Launch starts one server for each spec, in order, and returns without waiting for them to answer. It is called
	// once. After an error the servers that did start are ended by Close.
	Launch(ctx context.Context, specs []Spec) ([]Server, error)

	// Close ends every server, whatever its state, waits for them to be gone, and deletes what they stored. It may
	// be called twice.
	Close() error
}

// A Spec is a server to start.
type Spec struct {
	// Name is unique in its group, and fit for a file name.
	Name string

	// Port is where 127.0.0.1 must lead to the server, and BusPort where it must lead to its cluster bus, for this
	// program and for the other nodes alike. BusPort is 0 for a server outside a cluster.
	Port, BusPort int

	// Flags are the server's, in the form "--port", "7000". They do not say where to listen (--bind) or to
	// keep data (--dir): that is for the launcher to add, before them, with whatever else it takes there.
	Flags []string

	// Files are to be in the data folder before the first start: name to content. The server rewrites them.
	Files map[string]string
}

// A Server is one running server. Its methods may be called concurrently.
type Server interface {
	// Kill ends the server at once, as SIGKILL does, and returns when it is gone. Killing a dead server is no error.
	Kill() error

	// Freeze stops the server from running without closing its connections, as SIGSTOP does; Thaw undoes it.
	Freeze() error
	Thaw() error

	// Start runs a killed server again, on the same ports with the same flags. If wipe is set its data folder is first
	// emptied of all but the files that its Spec named. It returns without waiting for an answer.
	Start(ctx context.Context, wipe bool) error

	// Exited returns nil while the server runs, frozen or not, and afterwards how it ended. The error wraps
	// ErrAddrInUse where the server ended because its port was taken.
	Exited() error

	// PID is the server's process id as it reports it itself (process_id of INFO), or 0 if that is not known.
	// It tells our server from a stranger on the same port.
	PID() int

	// LogTail returns the last lines of the server's log.
	LogTail(lines int) string
}
