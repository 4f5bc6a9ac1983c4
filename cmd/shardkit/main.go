// Command shardkit is the one binary for people who operate sharded Redis.
// `shardkit --help` lists what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/tiercache/soak"
)

type cli struct {
	Bench   benchCmd   `cmd:"" help:"Measure a replicated set beside the ways to do without one."`
	Conform conformCmd `cmd:"" help:"Check a client's adapter against the suite, on servers of its own or on your cluster."`
	Demo    demoCmd    `cmd:"" help:"Watch the library at work on real servers, in under a minute."`
	Load    loadCmd    `cmd:"" help:"Put a proxy under load, and tell the percentiles."`
	Ring    ringCmd    `cmd:"" help:"Tell which part of the keys each node of a ring has, and how many move when nodes come or go."`
	Serve   serveCmd   `cmd:"" help:"Serve a cache over HTTP, with metrics and a dashboard."`
	Slot    slotCmd    `cmd:"" help:"Tell which slot each key is in, and the tag that names that slot."`
	Set     setCmd     `cmd:"" help:"Write, read, check and repair a replicated set."`
	Soak    soakCmd    `cmd:"" help:"Break shards and processes of a cache for a while, and judge what its readers saw."`
	Up      upCmd      `cmd:"" help:"Run throwaway servers until Ctrl-C."`
	Version versionCmd `cmd:"" help:"Tell which versions this binary was built from."`
}

// Exit codes, as documented in --help.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2

	// Of bench gate and bench compare. Whether usage or noise is the reason, nothing is known.
	exitInconclusive = 2
)

const description = `Tools for people who run sharded Redis.

Exit codes: 0 done, 1 failed, 2 wrong usage.`

// console is where a command writes. Plain means that out is not a terminal.
type console struct {
	in       io.Reader
	out, err io.Writer
	plain    bool
}

func main() {
	soak.Main() // where this is a process of shardkit soak
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := run(ctx, os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr, !isTerminal(os.Stdout)})
	stop()
	os.Exit(code)
}

// run is main without the process around it.
func run(ctx context.Context, args []string, con console) int {
	redis.SetLogger(silent{})
	exit := -1
	parser, err := newParser(ctx, con, func(code int) { exit = code })
	if err != nil {
		fmt.Fprintln(con.err, "shardkit:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	switch {
	case exit >= 0: // --help was printed
		return exit
	case err != nil:
		fmt.Fprintf(con.err, "shardkit: %s (see shardkit --help)\n", oneLine(err))
		return exitUsage
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(con.err, "shardkit:", oneLine(err))
		if coded := (exitWith{}); errors.As(err, &coded) {
			return coded.code
		}
		return exitFailed
	}
	return exitOK
}

func newParser(ctx context.Context, con console, exit func(code int)) (*kong.Kong, error) {
	return kong.New(&cli{},
		kong.Name("shardkit"), kong.Description(description),
		kong.Writers(con.out, con.err), kong.Exit(exit),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(con),
		kong.Configuration(kong.JSON),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
}

// exitWith is an error with an exit code of its own.
type exitWith struct {
	code int
	error
}

func (e exitWith) Unwrap() error { return e.error }

// oneLine keeps an error to one line, whatever a server or library put in it.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// silent drops the client library's own log: what matters reaches the user as
// the command's error.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
