// Empty: its presence lets the compiler accept the functions without a body in linkname.go.
