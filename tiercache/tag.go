package tiercache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// ErrTag means that a tag was given that is none: one has 1 to 255 bytes, and a
// value at most 32 of them.
var ErrTag = errors.New("tiercache: a tag has 1 to 255 bytes, and a value at most 32 tags")

const (
	maxTags   = 32
	maxTagLen = 255
)

// Tags gives tags to the values that the call stores, loaded ones too, and to what
// a loader says does not exist. InvalidateTag makes all values of a tag misses. A
// value has the tags of the call that stored it, and no others.
func Tags(tags ...string) CallOption {
	if tags == nil {
		tags = []string{}
	}
	return CallOption{tags: tags}
}

// TagsOf gives to each value that the call stores, loaded ones too, the tags that f
// returns for it, and those of Tags besides: for tags that are known only with the
// value. A loader that has to give others returns a V that holds them. f is not asked about what does not
// exist. It must be of the cache's V, or the call fails with ErrTag.
//
// A loaded value costs one more round trip where its tags have no values yet. It is not
// stored where this process does not hear of writes. For Fill, whose lease knows nothing of them, such
// tags count as invalidated, so that the next one under another lease stores.
func TagsOf[V any](f func(value V) []string) CallOption {
	if f == nil {
		f = func(V) []string { return nil }
	}
	return CallOption{tagsOf: f}
}

// callOpts is what the options of a call say of the values that it stores. of is nil
// without TagsOf.
func (c *Cache[V]) callOpts(opts []CallOption) (life time.Duration, tags []string, of func(V) []string, err error) {
	if life, err = c.opts.life(opts); err != nil {
		return 0, nil, nil, err
	}
	for _, opt := range opts {
		if opt.tagsOf == nil {
			continue
		}
		var ok bool
		if of, ok = opt.tagsOf.(func(V) []string); !ok {
			return 0, nil, nil, fmt.Errorf("%w: TagsOf has a %T, and this cache needs a %T", ErrTag, opt.tagsOf, of)
		}
	}
	tags, err = tagsOf(opts)
	return life, tags, of, err
}

// InvalidateTag makes all values that have one of the tags misses, in every
// process, as Delete does with one key: with one round trip a shard, however many
// values there are, and none for processes that hold some. A load that is under way
// with one of the tags is not stored.
//
// Where a shard is out, a note is left for its return. The error joins a *ShardError
// for each shard that failed, and is as for Delete: there the outcome is unknown,
// and a note will be left as long as this process lives.
func (c *Cache[V]) InvalidateTag(ctx context.Context, tags ...string) error {
	tags, err := checkTags(tags)
	if err == nil {
		err = c.closed()
	}
	if err != nil || len(tags) == 0 {
		return err
	}
	return c.each(ctx, func(r route) error { return c.invalidate(ctx, r, tags) })
}

// invalidate deletes the keys of tags on one shard.
func (c *Cache[V]) invalidate(ctx context.Context, r route, tags []string) error {
	places := c.tagPlaces(tags)
	sequence := int64(math.MaxInt64) // until the view ends, the shard is asked
	var err error
	if r.out.Load() {
		err = c.leaveAll(r.remote, places)
		if err == nil && (r.returning.Load() > 0 || !r.out.Load()) { // its notes may have been read before
			_, err = r.erase(ctx, places)
			err = unknown(err)
		}
	} else {
		v := r.synced()
		var reply *scriptReply
		if reply, err = c.writeTo(ctx, r, places, make([]item, len(tags))); err == nil {
			sequence = reply.sequence
			r.doubt(v, reply.epoch)
		}
	}
	present := r.view.Load()
	for _, tag := range tags {
		present.invalidated(tag, sequence)
	}
	if err != nil {
		present.failed.Add(1)
		c.owe(r, places)
		return &ShardError{r.name, "invalidate", err}
	}
	return nil
}

// leaveAll leaves notes for a shard that is out, which others read when it is back.
func (s *shardSet) leaveAll(r *remote, places []string) error {
	if s.off.notes {
		return nil
	}
	set := make(map[string]struct{}, len(places))
	for _, place := range places {
		set[place] = struct{}{}
	}
	for to, own := range s.holders(r, set) {
		if err := s.leave(to, r, own); err != nil {
			return err
		}
		if to != r {
			route{remote: to, stand: &stand{ahead: []*remote{r}}}.leftNotes()
		}
	}
	return nil
}

// checkTags returns the tags in order, each once.
func checkTags(tags []string) ([]string, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	tags = slices.Compact(tags)
	for _, tag := range tags {
		if tag == "" || len(tag) > maxTagLen || len(tags) > maxTags {
			return nil, ErrTag
		}
	}
	return tags, nil
}

func tagsOf(opts []CallOption) ([]string, error) {
	var tags []string
	for _, opt := range opts {
		if opt.tags != nil {
			tags = opt.tags
		}
	}
	return checkTags(tags)
}

// tagKind is what the names of tags' keys have between the namespace and the tag.
const tagKind = "#tag:"

func (c *Cache[V]) tagPlaces(tags []string) []string {
	places := make([]string, len(tags))
	for i, tag := range tags {
		places[i] = c.opts.Namespace + tagKind + tag
	}
	return places
}

// scriptFor is the script and its arguments for values with tags, which all have
// the same.
func (c *Cache[V]) scriptFor(plain, tagged *script.Script, tags []string, life time.Duration, places, args []string) (*script.Script, []string, []string) {
	if len(tags) == 0 {
		return plain, places, args
	}
	places = append(places[:len(places):len(places)], c.tagPlaces(tags)...)
	return tagged, places, append(args, strconv.FormatInt(life.Milliseconds(), 10), strconv.Itoa(len(tags)))
}

// tagsAmong are the tags that items have, each once.
func tagsAmong(items []item) []string {
	var tags []string
	for i, it := range items {
		if i == 0 || !slices.Equal(it.tags, items[i-1].tags) {
			tags = append(tags, it.tags...)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

func longest(items []item) (life time.Duration) {
	for _, it := range items {
		life = max(life, it.life)
	}
	return life
}

// withTags puts tags into the body of an envelope.
func withTags(body string, tags []string) string {
	if len(tags) == 0 {
		return body
	}
	var b strings.Builder
	b.WriteByte(body[0] | flagTagged)
	b.WriteByte(body[1])
	b.WriteByte(byte(len(tags)))
	for _, tag := range tags {
		b.WriteByte(byte(len(tag)))
		b.WriteString(tag)
	}
	b.WriteString(body[bodySize:])
	return b.String()
}

// cutTags splits what follows flags and codec of a value with tags.
func cutTags(s string) (tags []string, payload string, ok bool) {
	if s == "" || s[0] == 0 {
		return nil, s, false
	}
	n := int(s[0])
	s = s[1:]
	for range n {
		if s == "" || s[0] == 0 || len(s) <= int(s[0]) {
			return nil, s, false
		}
		tags = append(tags, s[1:1+int(s[0])])
		s = s[1+int(s[0]):]
	}
	return tags, s, true
}

// payloadOf is the payload of a body that this process made or has read.
func payloadOf(body string) string {
	if body[0]&flagTagged == 0 {
		return body[bodySize:]
	}
	_, payload, _ := cutTags(body[bodySize:])
	return payload
}

func tagsIn(body string) []string {
	if body == "" || body[0]&flagTagged == 0 {
		return nil
	}
	tags, _, _ := cutTags(body[bodySize:])
	return tags
}

// tag is the stripe of a tag: the sequence at which one of those that hash there
// was last invalidated, as far as the view heard.
func (v *view) tag(tag string) *atomic.Int64 { return &v.tags[stripeOf(tag)%tagStripes] }

func (v *view) invalidated(tag string, sequence int64) {
	raise(v.tag(tag), sequence)
	v.invalidations.Add(1)
}

func (v *view) stripesOf(tags []string) []*atomic.Int64 {
	if len(tags) == 0 {
		return nil
	}
	list := make([]*atomic.Int64, len(tags))
	for i, tag := range tags {
		list[i] = v.tag(tag)
	}
	return list
}

// later reports whether one of the stripes is above the sequence.
func later(stripes []*atomic.Int64, sequence int64) bool {
	for _, s := range stripes {
		if s.Load() > sequence {
			return true
		}
	}
	return false
}

// A voided value is one that a shard still holds, in the place of what is no value
// any more since a tag of it was invalidated.
type voided string

// judge finds the values of a reading that are misses by their tags. Most of the
// time the view knows, which hears of every tag that is invalidated since it was
// synchronised, as L1 hears of writes. Older values have their tags' keys looked at,
// all in one round trip.
func (r *remote) judge(ctx context.Context, rd *reading) error {
	var doubtful []int
	var tags []string
	for i, raw := range rd.values {
		text, ok := raw.(string)
		if !ok || len(text) < headSize+bodySize || text[headSize]&flagTagged == 0 {
			continue
		}
		e, ok := parseEnvelope(text)
		if !ok || e.epoch != rd.state.epoch || r.knows(&e, rd) {
			continue
		}
		doubtful = append(doubtful, i)
		tags = append(tags, e.tags...)
	}
	if len(doubtful) == 0 {
		return nil
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	cmd := make([]string, 0, 2+len(tags))
	cmd = append(cmd, "MGET")
	for _, tag := range tags {
		cmd = append(cmd, r.opts.Namespace+tagKind+tag)
	}
	reply, err := r.do(ctx, append(cmd, r.stateKey))
	if err != nil {
		return err
	}
	list, ok := reply.([]any)
	if !ok || len(list) != len(tags)+1 {
		return fmt.Errorf("MGET of %d keys answered %T of %d", len(tags)+1, reply, len(list))
	}
	text, _ := list[len(tags)].(string)
	st, known := parseState(text)
	made := make(map[string]int64, len(tags))
	for i, tag := range tags {
		if at, ok := list[i].(string); ok && len(at) == 8 {
			made[tag] = int64(binary.BigEndian.Uint64([]byte(at)))
		}
	}
	for _, i := range doubtful {
		e, _ := parseEnvelope(rd.values[i].(string))
		standing := known && st.epoch == e.epoch
		for _, tag := range e.tags {
			at, ok := made[tag]
			standing = standing && ok && at <= e.sequence
		}
		if !standing {
			rd.values[i] = voided(rd.values[i].(string))
		}
	}
	return nil
}

// knows reports whether the view can tell that no tag of e was invalidated up to the
// moment to which it then dates the reading back.
func (r *remote) knows(e *envelope, rd *reading) bool {
	v := r.synced()
	if v == nil || v.epoch.Load() != e.epoch || v.base > e.sequence || !r.counts(v.generation, now()) {
		return false
	}
	heard := v.heard.Load()
	if r.opts.LocalBytes < 0 && heard < rd.state.sequence {
		return false // without L1 nothing is read that a notice under way would have ended
	}
	for _, tag := range e.tags {
		if v.tag(tag).Load() > e.sequence {
			return false
		}
	}
	rd.state.sequence = min(rd.state.sequence, heard)
	return true
}
