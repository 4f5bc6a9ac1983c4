package tiercache

// Mechanisms that a test may switch off.
type Mechanisms struct {
	Sequence, Marker, Deadline, Epoch, Trust, Stripes, Verify, Health, Notes, Outage, Copies bool
}

// NewWithout is New, with mechanisms switched off.
func NewWithout[V any](shards map[string]Shard, opts *Options, off Mechanisms) (*Cache[V], error) {
	return newCache[V](shards, opts, mechanisms{off.Sequence, off.Marker, off.Deadline, off.Epoch, off.Trust, off.Stripes, off.Verify, off.Health, off.Notes, off.Outage, off.Copies})
}
