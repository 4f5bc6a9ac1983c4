package proxy

import "net/http"

type page struct{}

func newPage(*Proxy) *page { return &page{} }

func (p *Proxy) dashboard(w http.ResponseWriter, r *http.Request) error { return nil }
