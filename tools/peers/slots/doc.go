// Command slots holds the slot functions of Redis clients beside that of slotmap, to compare their answers and their
// speed. It is for comparison only, and apart from the released command, which should not depend on names that clients
// keep to themselves.
//
// The clients keep these functions in internal packages; they are reached by name (go:linkname), exactly as the clients
// compile them, not copied. The toolchain allows that for packages outside the standard library. One that refuses says "invalid
// reference"; build and test with -ldflags=-checklinkname=0 then. A version that moves or renames the function fails to
// link: correct the name in linkname.go.
//
//	go run ./slots                  times each, by package bench; -duration and -json as in shardkit bench run
//	go test -run TestVectors -v     how many of the server's own answers each gets wrong
//	go test -run TestSlotSpeed -v   nanoseconds per key, and the ratios to slotmap
package main
