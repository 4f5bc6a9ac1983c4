package soak

// stopped reports whether an operation failed because its process did not run at its
// deadline, or so shortly before that little time was left.
func (c *check) stopped(op *Op) bool {
	little := (op.Deadline - op.Begin) / 4
	for _, p := range c.pauses[op.Process] {
		if p.Begin < min(op.End, op.Deadline) && p.End > op.Begin && p.End+little > op.Deadline {
			return true
		}
	}
	return false
}

// ran reports whether a process ran all the time, in one life.
func (c *check) ran(process int, from, to int64) bool {
	for _, p := range c.pauses[process] {
		if p.Begin < to && p.End > from {
			return false
		}
	}
	for i := range c.h.Faults {
		f := &c.h.Faults[i]
		if f.Kind == KillProc && f.Process == process && f.Begin < to && f.End > from {
			return false
		}
	}
	return true
}

// again reports whether something else befell the fault's shard, as the process has it,
// after the fault and before the given moment.
func (c *check) again(f *Fault, process int, before int64) bool {
	for i := range c.h.Faults {
		g := &c.h.Faults[i]
		if g != f && g.Shard == f.Shard && (g.Process < 0 || g.Process == process) && g.Begin < before && g.End >= f.End {
			return true
		}
	}
	return false
}
