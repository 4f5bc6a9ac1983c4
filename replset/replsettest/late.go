package replsettest

import "errors"

// late is the error of a call that was right, and took too long: the backend's
// fault, or that of a machine that stalled.
type late struct{ error }

// thrice runs check until its error is not late, three times at most: a stall
// spoils one of them, a backend that is late is so each time.
func thrice(check func() error) (err error) {
	var stalled *late
	for range 3 {
		if err = check(); !errors.As(err, &stalled) {
			return err
		}
	}
	return err
}
