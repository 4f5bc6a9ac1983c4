package ring

import "slices"

// With returns the ring with one node more. What is down stays down. It fails as [New] does; a name that is in the ring
// already is [ErrDuplicate].
func (r *Ring) With(node Node) (*Ring, error) {
	return r.again(append(r.Nodes(), node))
}

// Without returns the ring with one node less. What else is down stays down. For a name that is not in the ring it fails with
// [ErrUnknown], for the last node with [ErrNoNodes], for the last live one with [ErrAllDown].
func (r *Ring) Without(name string) (*Ring, error) {
	i, ok := r.Find(name)
	if !ok {
		return nil, &NodeError{name, ErrUnknown}
	}
	return r.again(slices.Delete(r.Nodes(), i, i+1))
}

// WithWeight returns the ring with another weight for one node. Keys move to it or from it alone.
func (r *Ring) WithWeight(name string, weight float64) (*Ring, error) {
	i, ok := r.Find(name)
	if !ok {
		return nil, &NodeError{name, ErrUnknown}
	}
	nodes := r.Nodes()
	nodes[i].Weight = weight
	return r.again(nodes)
}

// again makes the ring anew for other nodes, and lays the overlay on it.
func (r *Ring) again(nodes []Node) (*Ring, error) {
	again, err := New(nodes, &Options{Placement: r.placement, HashTags: r.tags})
	if err != nil {
		return nil, err
	}
	down := slices.DeleteFunc(r.Down(), func(name string) bool {
		_, ok := again.Find(name)
		return !ok
	})
	return again.WithDown(down...)
}
