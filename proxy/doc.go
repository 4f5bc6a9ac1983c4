// Package proxy is a tiercache over HTTP: for programs that are not written in
// Go, and for people who want to look at a cache.
//
//	p, err := proxy.New(map[string]tiercache.Shard{"a": goredis.NewShard(client)}, nil)
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	return http.ListenAndServe("127.0.0.1:7000", p)
//
// A Proxy is an http.Handler. Proxy.Serve adds a server whose time-outs suit it, and
// a shutdown that lets requests finish.
//
// # Routes
//
//	PUT    /cache/KEY    {"value": any, "ttlSeconds": n}: 201. Any other Content-Type: the body is the value
//	GET    /cache/KEY    200 {"key", "value"}, or the body of another Content-Type; 404
//	DELETE /cache/KEY    200, whether or not there was a value
//	POST   /mget         {"keys": [...]}: 200 {"values": {key: value}}, without those that are missing
//	GET    /metrics      Prometheus's text, or a Snapshot where JSON is asked for
//	GET    /health       200, or 503 while no shard can serve; which are out, and since when
//	GET    /health/live  200 while the process answers
//	GET    /             the dashboard
//
// KEY is all of the path that follows, percent-decoded: it may hold slashes.
//
// Answers of GET carry an ETag, which If-None-Match may bring back, and Cache-Ttl,
// the rest of the value's life in seconds. A PUT takes Cache-Ttl too, where its body
// has no ttlSeconds.
//
// A 404 carries Cache-Fill. A client that then loads the value from its database
// brings it back with its PUT, which is refused with 412 if the key was written
// or deleted meanwhile: so what it loaded cannot replace what is newer.
//
// Every error is {"error": "one message"}. A 503 has Retry-After.
//
// # Values
//
// JSON values are those of Go programs that use a tiercache.Cache of the same
// namespace with its JSON codec. A value of another content type is, in JSON and
// for those programs, {"$contentType": "image/png", "$base64": "..."}.
//
// # Guarantees
//
// Those of package tiercache: an acknowledged write or delete is on its shard, and
// no proxy or program that shares the shards gives what it replaced for longer
// than tiercache's bounds. A request whose shard does not answer is a 503, never
// an older value; after 1.7 s at most the shard counts as out, and others stand
// in for it, at first without values.
package proxy
