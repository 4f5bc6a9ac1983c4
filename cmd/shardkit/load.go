package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shardkit/shardkit/bench"
)

type loadCmd struct {
	URL      string        `name:"url" help:"The proxy." default:"http://127.0.0.1:7000" env:"SHARDKIT_URL" placeholder:"URL"`
	Rate     float64       `help:"Requests a second, at fixed times; 0 for as many as the workers can." default:"1000"`
	Workers  int           `help:"Requests under way at one time, at most." default:"64"`
	Duration time.Duration `help:"How long." default:"10s"`
	Reads    float64       `help:"Part of the requests that read, from 0 to 1; the others write." default:"0.9"`
	Keys     int           `help:"Number of keys, load-0 to load-N." default:"10000"`
	Zipf     float64       `help:"Exponent of Zipf's law, by which few keys are most of the requests: above 1." default:"1.1"`
	Uniform  bool          `help:"Ask for all keys alike."`
	Size     int           `help:"Bytes of a value." default:"64"`
	Seed     uint64        `help:"Repeats the order of a run." placeholder:"N"`
	JSON     string        `name:"json" help:"Write a report to this file." placeholder:"FILE"`
}

func (loadCmd) Help() string {
	return `A read that finds nothing is followed by a write with its Cache-Fill, as a client does that loads the value elsewhere; both
are one operation. A token comes from $SHARDKIT_TOKEN.

With a rate, latency counts from when a request was due, so that a proxy that hangs for a second shows a second.

Examples:
  shardkit load --rate 2000 --duration 30s
  shardkit load --url http://10.0.0.5:7000 --uniform --keys 1000000 --reads 0.5 --rate 0 --workers 16`
}

// Validate reports what is wrong with the command line.
func (c *loadCmd) Validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:7000", c.URL)
	case !(c.Rate >= 0):
		return errors.New("--rate must be 0 or more")
	case c.Workers < 1:
		return errors.New("--workers must be 1 or more")
	case c.Duration <= 0:
		return errors.New("--duration must be more than 0")
	case !(c.Reads >= 0 && c.Reads <= 1):
		return errors.New("--reads must be from 0 to 1")
	case c.Keys < 1:
		return errors.New("--keys must be 1 or more")
	case !(c.Zipf > 1) && !c.Uniform:
		return errors.New("--zipf must be more than 1; --uniform asks for all keys alike")
	case c.Size < 0:
		return errors.New("--size must be 0 or more")
	}
	return nil
}

func (c loadCmd) Run(ctx context.Context, con console) error {
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, c.Workers
	defer transport.CloseIdleConnections()
	target := &loadTarget{
		loadCmd: c, token: os.Getenv("SHARDKIT_TOKEN"),
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second},
		body:   []byte(`{"value":"` + strings.Repeat("x", c.Size) + `"}`),
	}
	// One request tells what would otherwise be the error of each.
	if err := target.get(ctx, "load-0"); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	o := &bench.Options{
		Load: bench.Load{Mode: bench.Open, Rate: c.Rate, Workers: c.Workers, Duration: c.Duration},
		Seed: c.Seed, SkipCounters: true, Classify: func(err error) string { return err.Error() },
	}
	if c.Rate == 0 {
		o.Load.Mode = bench.Closed
	}
	watch := newBenchWatch(con)
	o.Progress = func(p bench.Progress) {
		if watch.terminal {
			watch.draw(fmt.Sprintf("  %3.0f %%, %s done, %s failed", 100*p.Done, thousands(int(p.Ops)), thousands(int(p.Errors))))
		}
	}
	result, err := bench.Run(ctx, bench.Scenario{Name: "load", Doc: "a proxy over HTTP", Variants: []bench.Variant{target.variant()}}, o)
	watch.end()
	if result == nil || len(result.Variants) == 0 {
		return err
	}
	if errors.Is(err, bench.ErrInterrupted) {
		err = errors.New("load: interrupted; what was measured is printed")
	}
	if c.JSON != "" {
		err = errors.Join(err, bench.NewReport(result).WriteJSON(c.JSON))
	}
	return errors.Join(err, writeLoad(con.out, result))
}

// loadTarget is the proxy, and what is asked of it.
type loadTarget struct {
	loadCmd
	token  string
	client *http.Client
	body   []byte
}

func (t *loadTarget) variant() bench.Variant {
	return bench.Variant{Name: "proxy", Setup: func(context.Context, int) (*bench.Subject, error) {
		var kinds []bench.Kind
		// Weights are whole numbers.
		reads := int(1000*t.Reads + 0.5)
		if reads > 0 {
			kinds = append(kinds, t.kind("read", reads, t.get))
		}
		if reads < 1000 {
			kinds = append(kinds, t.kind("write", 1000-reads, func(ctx context.Context, key string) error { return t.put(ctx, key, "") }))
		}
		return &bench.Subject{Kinds: kinds}, nil
	}}
}

func (t *loadTarget) kind(name string, weight int, do func(ctx context.Context, key string) error) bench.Kind {
	return bench.Kind{Name: name, Weight: weight, Worker: func(worker int) (bench.Op, error) {
		r := rand.New(rand.NewPCG(t.Seed, uint64(worker)<<1|uint64(len(name)&1)))
		next := func() uint64 { return r.Uint64N(uint64(t.Keys)) }
		if !t.Uniform {
			next = rand.NewZipf(r, t.Zipf, 1, uint64(t.Keys-1)).Uint64
		}
		return func(ctx context.Context) error { return do(ctx, fmt.Sprint("load-", next())) }, nil
	}}
}

func (t *loadTarget) get(ctx context.Context, key string) error {
	status, header, err := t.send(ctx, http.MethodGet, key, nil, "")
	switch {
	case err != nil:
		return err
	case status == http.StatusNotFound:
		return t.put(ctx, key, header.Get("Cache-Fill"))
	case status != http.StatusOK:
		return fmt.Errorf("GET answered %d", status)
	}
	return nil
}

// put writes the key. With fill, who else was first is no failure.
func (t *loadTarget) put(ctx context.Context, key, fill string) error {
	status, _, err := t.send(ctx, http.MethodPut, key, t.body, fill)
	switch {
	case err != nil:
		return err
	case status != http.StatusCreated && !(fill != "" && status == http.StatusPreconditionFailed):
		return fmt.Errorf("PUT answered %d", status)
	}
	return nil
}

func (t *loadTarget) send(ctx context.Context, method, key string, body []byte, fill string) (int, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(t.URL, "/")+"/cache/"+key, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if fill != "" {
		r.Header.Set("Cache-Fill", fill)
	}
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	res, err := t.client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the key, so that like failures are counted together
		}
		return 0, nil, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header, err
}

// writeLoad prints the summary.
func writeLoad(out io.Writer, r *bench.Result) error {
	v := r.Variants[0]
	total := v.Response.Count + v.Errors
	fmt.Fprintf(out, "%s requests, %s a second, %s failed; seed %d\n\n", thousands(int(total)), thousands(int(v.Rate)), thousands(int(v.Errors)), r.Settings.Seed)
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "\tcount\tp50\tp90\tp99\tp99.9\tmax\t")
	for _, k := range v.Kinds {
		l := k.Response
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", k.Name, thousands(int(l.Count)), loadTime(l.P50), loadTime(l.P90), loadTime(l.P99), loadTime(l.P999), loadTime(l.Max))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, f := range v.Failures {
		if _, err := fmt.Fprintf(out, "failed %s times: %s\n", thousands(int(f.Count)), f.Kind); err != nil {
			return err
		}
	}
	for _, m := range r.Marks {
		if _, err := fmt.Fprintln(out, m); err != nil {
			return err
		}
	}
	return nil
}

// loadTime writes a latency in ms.
func loadTime(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
