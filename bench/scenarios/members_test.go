package scenarios

import (
	"slices"
	"strconv"
	"testing"
)

func TestContents(t *testing.T) {
	for _, c := range []content{{size: 20}, {size: 200}, {size: 2000}, {size: 200, integers: true}} {
		a, b := c.version(0), c.version(1)
		for v, members := range [][]string{a, b} {
			distinct := slices.Compact(slices.Sorted(slices.Values(members)))
			if len(distinct) != c.size {
				t.Errorf("%s, version %d: got %d distinct members, want %d", c, v, len(distinct), c.size)
			}
			for _, m := range members {
				if n, err := strconv.ParseInt(m, 10, 32); c.integers && (err != nil || n < 1e6) || !c.integers && len(m) != 13 {
					t.Errorf("%s, version %d: member %q is not as %q says", c, v, m, c.words())
				}
			}
		}
		differ := 0
		for i := range a {
			if a[i] != b[i] {
				differ++
			}
		}
		if differ != c.size/10 {
			t.Errorf("%s: the versions differ in %d members, want %d", c, differ, c.size/10)
		}
	}
}

func TestChangeGoesThereAndBack(t *testing.T) {
	c := content{size: 200}
	members := c.version(0)
	d := newChange(c)
	now := map[string]bool{}
	for _, m := range members {
		now[m] = true
	}
	for n := range 4 {
		add, remove := d.next()
		for _, m := range remove {
			if !now[m] {
				t.Errorf("change %d removes %q, which is not there", n, m)
			}
			delete(now, m)
		}
		for _, m := range add {
			if now[m] {
				t.Errorf("change %d adds %q, which is there", n, m)
			}
			now[m] = true
		}
		want := d.of(members)
		for _, m := range want {
			if !now[m] {
				t.Errorf("after change %d: of() names %q, which is not there", n, m)
			}
		}
		if size := 200 + 2*((n+1)%2); len(want) != size || len(now) != size {
			t.Errorf("after change %d: got %d members, and %d by of(); want %d", n, len(now), len(want), size)
		}
	}
}
