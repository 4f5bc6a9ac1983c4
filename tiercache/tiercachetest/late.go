// Code generated from replset/replsettest/late.go by go generate; DO NOT EDIT.

package tiercachetest

import "errors"

// late is the error of a call that was right, and took too long: the shard's
// fault, or that of a machine that stalled.
type late struct{ error }

// thrice runs check until its error is not late, three times at most: a stall
// spoils one of them, a shard that is late is so each time.
func thrice(check func() error) (err error) {
	var stalled *late
	for range 3 {
		if err = check(); !errors.As(err, &stalled) {
			return err
		}
	}
	return err
}
