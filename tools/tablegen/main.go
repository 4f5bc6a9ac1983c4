// Command tablegen writes and checks the table of package slotmap: for each of the 16384 slots of a Redis Cluster, the
// smallest non-negative decimal integer that hashes to it.
//
//	tablegen                 write the table to standard output
//	tablegen -o FILE         write it to FILE
//	tablegen -check FILE     compute it again and compare it with FILE
//
// The last two print one line: the file, the number of tags, the largest, and the sha256 of the tags in slot order, as
// little-endian 32-bit integers. The output depends on nothing but the program: no network, no clock.
//
// It exits with 0 when all is well, 1 when FILE cannot be written or read or differs, 2 on a wrong command line; the
// reason is one line on standard error.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("tablegen", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors take one line here, help is printed below
	out := flags.String("o", "", "write the table to `FILE`")
	check := flags.String("check", "", "compare `FILE` with the table")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		fmt.Fprintln(stdout, "usage: tablegen [-o FILE | -check FILE]")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return exitOK
	case err != nil:
		return usage(stderr, err.Error())
	case flags.NArg() > 0:
		return usage(stderr, fmt.Sprintf("unexpected argument %q", flags.Arg(0)))
	case *out != "" && *check != "":
		return usage(stderr, "-o and -check exclude each other")
	}

	t := compute()
	if *check != "" {
		source, err := os.ReadFile(*check)
		if err != nil {
			return failed(stderr, err)
		}
		if err := compare(source, t); err != nil {
			return failed(stderr, fmt.Errorf("%s: %w: write it again with -o %[1]s", *check, err))
		}
		return report(stdout, *check, t)
	}
	if *out != "" {
		if err := os.WriteFile(*out, render(t), 0o644); err != nil {
			return failed(stderr, err)
		}
		return report(stdout, *out, t)
	}
	if _, err := stdout.Write(render(t)); err != nil {
		return failed(stderr, err)
	}
	return exitOK
}

func report(stdout io.Writer, file string, t *table) int {
	fmt.Fprintf(stdout, "%s: %d tags, largest %d, sha256 %s\n", file, slots, t.largest(), t.sum())
	return exitOK
}

func failed(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "tablegen: %v\n", err)
	return exitFailed
}

func usage(stderr io.Writer, reason string) int {
	fmt.Fprintf(stderr, "tablegen: %s; usage: tablegen [-o FILE | -check FILE]\n", reason)
	return exitUsage
}
