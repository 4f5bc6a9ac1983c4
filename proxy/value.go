package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// Value is what the proxy keeps at a key: a JSON text, or bytes of another type.
type Value struct {
	ContentType string // empty: Data is JSON
	Data        []byte // not to be changed
}

// raw is the JSON form of bytes.
type raw struct {
	ContentType *string `json:"$contentType"`
	Base64      *[]byte `json:"$base64"`
}

// MarshalJSON returns the JSON text, or the object that stands for bytes.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.ContentType == "" {
		return v.Data, nil
	}
	return json.Marshal(raw{&v.ContentType, &v.Data})
}

// UnmarshalJSON takes any JSON text.
func (v *Value) UnmarshalJSON(data []byte) error {
	if bytes.Contains(data, []byte(`"$base64"`)) {
		var r raw
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if d.Decode(&r) == nil && r.ContentType != nil && *r.ContentType != "" && r.Base64 != nil {
			*v = Value{*r.ContentType, *r.Base64}
			return nil
		}
	}
	var b bytes.Buffer
	err := json.Compact(&b, data)
	*v = Value{Data: b.Bytes()}
	return err
}

// etag is the value's entity tag.
func (v Value) etag() string {
	h := sha256.New()
	h.Write([]byte(v.ContentType + "\n"))
	h.Write(v.Data)
	return `"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12]) + `"`
}
