package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardkit/shardkit/tiercache"
)

// Headers of requests and answers.
const (
	headerTTL  = "Cache-Ttl"
	headerFill = "Cache-Fill"
)

func (p *Proxy) get(w http.ResponseWriter, r *http.Request) error {
	key, err := p.key(r)
	if err != nil {
		return err
	}
	if err := p.enter(); err != nil {
		return err
	}
	found, err := p.cache.GetOrLease(r.Context(), key)
	p.leave()
	h := w.Header()
	if err != nil {
		if found.Lease != "" {
			h.Set(headerFill, base64.RawURLEncoding.EncodeToString([]byte(found.Lease)))
		}
		return err
	}
	v := found.Value
	etag := v.etag()
	h.Set("ETag", etag)
	h.Set(headerTTL, strconv.FormatFloat(found.Left.Seconds(), 'f', 3, 64))
	if matches(r.Header.Values("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if v.ContentType == "" {
		answer(w, http.StatusOK, struct {
			Key   string `json:"key"`
			Value Value  `json:"value"`
		}{key, v})
		return nil
	}
	h.Set("Content-Type", v.ContentType)
	h.Set("Content-Length", strconv.Itoa(len(v.Data)))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'") // a page in the cache is not a page of ours
	w.WriteHeader(http.StatusOK)
	w.Write(v.Data)
	return nil
}

// matches reports whether an If-None-Match header holds the tag.
func matches(header []string, etag string) bool {
	for _, tag := range strings.Split(strings.Join(header, ","), ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}

func (p *Proxy) put(w http.ResponseWriter, r *http.Request) error {
	key, err := p.key(r)
	if err != nil {
		return err
	}
	for _, h := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since", "Content-Range", "Content-Encoding"} {
		if r.Header.Get(h) != "" {
			return fail(http.StatusNotImplemented, "PUT does not take %s: see Cache-Fill for a write that depends on what is there", h)
		}
	}
	value, opts, err := p.body(r)
	if err != nil {
		return err
	}
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	if fill := r.Header.Get(headerFill); fill != "" {
		lease, err := base64.RawURLEncoding.DecodeString(fill)
		if err != nil {
			return fail(http.StatusBadRequest, "Cache-Fill is not what a 404 gave: %v", err)
		}
		err = p.cache.Fill(r.Context(), key, string(lease), value, opts...)
		if err != nil {
			return err
		}
	} else if err := p.cache.Set(r.Context(), key, value, opts...); err != nil {
		return err
	}
	w.Header().Set("ETag", value.etag())
	answer(w, http.StatusCreated, map[string]string{"key": key})
	return nil
}

// body reads the value that a PUT brings, and its life.
func (p *Proxy) body(r *http.Request) (v Value, opts []tiercache.CallOption, err error) {
	contentType := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "":
		media = "application/json"
	case err != nil:
		return v, nil, fail(http.StatusBadRequest, "Content-Type %q: %v", contentType, err)
	case media == "application/x-www-form-urlencoded":
		return v, nil, fail(http.StatusUnsupportedMediaType, "Content-Type is that of a form: send application/json, or the type of the value itself")
	}
	data, err := p.read(r)
	if err != nil {
		return v, nil, err
	}
	seconds := math.NaN() // none
	if text := r.Header.Get(headerTTL); text != "" {
		if seconds, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(seconds) {
			return v, nil, fail(http.StatusBadRequest, "Cache-Ttl %q is not a number of seconds", text)
		}
	}
	if media == "application/json" {
		var in struct {
			Value given    `json:"value"`
			TTL   *float64 `json:"ttlSeconds"`
		}
		if err := decode(data, &in); err != nil {
			return v, nil, err
		}
		if !in.Value.there {
			return v, nil, fail(http.StatusBadRequest, "the body has no value: want {\"value\": ..., \"ttlSeconds\": n}; null is a value")
		}
		v = in.Value.Value
		if in.TTL != nil {
			seconds = *in.TTL
		}
	} else {
		v = Value{contentType, data}
	}
	if math.IsNaN(seconds) {
		return v, nil, nil
	}
	if !(seconds > 0 && seconds <= maxTTL.Seconds()) {
		return v, nil, fail(http.StatusBadRequest, "a life of %v seconds: want more than 0, and at most %.0f", seconds, maxTTL.Seconds())
	}
	return v, []tiercache.CallOption{tiercache.TTL(time.Duration(math.Ceil(seconds * 1e9)))}, nil
}

// given is a value that tells whether it was there: null is one.
type given struct {
	Value
	there bool
}

func (g *given) UnmarshalJSON(data []byte) error {
	g.there = true
	return g.Value.UnmarshalJSON(data)
}

// read reads a body.
func (p *Proxy) read(r *http.Request) ([]byte, error) {
	if r.ContentLength > p.opts.MaxBody {
		return nil, &http.MaxBytesError{Limit: p.opts.MaxBody}
	}
	data, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil || errors.As(err, &tooLarge):
		return data, err
	case timedOut(err):
		return nil, fail(http.StatusRequestTimeout, "the body took too long to arrive")
	}
	return nil, fail(http.StatusBadRequest, "the body did not arrive: %v", err)
}

// decode reads one JSON object with no fields but v's.
func decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return fail(http.StatusBadRequest, "the body is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == io.EOF {
		return fail(http.StatusBadRequest, "the body is empty")
	}
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		err = errors.New("something follows the object")
	}
	return fail(http.StatusBadRequest, "the body is not the JSON that is wanted: %s", strings.TrimPrefix(oneLine(err), "json: "))
}

func (p *Proxy) delete(w http.ResponseWriter, r *http.Request) error {
	key, err := p.key(r)
	if err != nil {
		return err
	}
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	if err := p.cache.Delete(r.Context(), key); err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]string{"key": key})
	return nil
}

func (p *Proxy) mget(w http.ResponseWriter, r *http.Request) error {
	data, err := p.read(r)
	if err != nil {
		return err
	}
	var in struct {
		Keys []string `json:"keys"`
	}
	if err := decode(data, &in); err != nil {
		return err
	}
	if in.Keys == nil {
		return fail(http.StatusBadRequest, "the body has no keys: want {\"keys\": [...]}")
	}
	if len(in.Keys) > p.opts.MaxKeys {
		return fail(http.StatusRequestEntityTooLarge, "%d keys, of at most %d", len(in.Keys), p.opts.MaxKeys)
	}
	for _, key := range in.Keys {
		if err := p.checkKey(key); err != nil {
			return err
		}
	}
	if err := p.enter(); err != nil {
		return err
	}
	values, err := p.cache.GetMany(r.Context(), in.Keys, nil)
	p.leave()
	out := struct {
		Values map[string]Value  `json:"values"`
		Errors map[string]string `json:"errors,omitempty"`
	}{Values: values}
	var failed *tiercache.KeysError
	switch {
	case errors.As(err, &failed):
		if slices.Sort(in.Keys); len(failed.Errs) == len(slices.Compact(in.Keys)) {
			return err // nothing is to be had
		}
		out.Errors = make(map[string]string, len(failed.Errs))
		for key, err := range failed.Errs {
			out.Errors[key] = failureOf(r.Context(), err).message
		}
	case err != nil:
		return err
	}
	answer(w, http.StatusOK, out)
	return nil
}
