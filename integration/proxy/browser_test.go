package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// browser is a page in Chromium, with what it asked for and what it complained about.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	requests   []string
	complaints []string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		why := "no Chromium: install it with `apt-get install chromium`"
		if os.Getenv("SHARDKIT_REQUIRE_LIVE") == "1" {
			t.Fatal("SHARDKIT_REQUIRE_LIVE=1, so this is not skipped: " + why)
		}
		t.Skip(why)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	b := &browser{t: t, ctx: ctx}
	var wg sync.WaitGroup
	t.Cleanup(func() { end(); wg.Wait() })
	b.do(chromedp.Navigate("about:blank"))
	note(&wg, b, chromedp.Events(ctx, network.RequestWillBeSent), func(e network.EventRequestWillBeSent) { b.requests = append(b.requests, e.Request.URL) })
	note(&wg, b, chromedp.Events(ctx, runtime.ExceptionThrown), func(e runtime.EventExceptionThrown) { b.complain(e.ExceptionDetails) })
	note(&wg, b, chromedp.Events(ctx, runtime.ConsoleAPICalled), func(e runtime.EventConsoleAPICalled) { b.complain(e) })
	note(&wg, b, chromedp.Events(ctx, log.EntryAdded), func(e log.EventEntryAdded) { b.complain(e.Entry) })
	b.do(call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}), call(runtime.Enable, cdp.Empty{}))
	return b
}

// note takes note of events, one at a time, until the browser ends.
func note[E any](wg *sync.WaitGroup, b *browser, events iter.Seq2[E, error], take func(E)) {
	wg.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			b.mu.Lock()
			take(e)
			b.mu.Unlock()
		}
	})
}

func (b *browser) complain(v any) {
	text, err := json.Marshal(v)
	b.complaints = append(b.complaints, fmt.Sprint(string(text), err))
}

// call is a command of the browser's protocol.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, command, params)
		return chromedp.Void{}, err
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func run[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// eval returns an expression's value.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

func (b *browser) look(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// shoot keeps a picture of the page in the ignored folder out/.
func (b *browser) shoot(name string) {
	b.t.Helper()
	png := run(b, chromedp.FullScreenshot(100))
	dir := filepath.Join("..", "..", "out", "dashboard")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

// audit returns what is wrong for someone who does not see well: text whose contrast
// is below 4.5, lines below 3, things to use or look at without a name, ids that are taken twice.
const audit = `(() => {
  const wrong = [];
  const parse = c => { const n = c.match(/[\d.]+/g).map(Number); return {r: n[0], g: n[1], b: n[2], a: n.length > 3 ? n[3] : 1}; };
  const channel = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const luminance = c => 0.2126 * channel(c.r) + 0.7152 * channel(c.g) + 0.0722 * channel(c.b);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a > 0) return c; } return {r: 255, g: 255, b: 255}; };
  let texts = 0;
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    if (!e.getClientRects().length) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const front = luminance(parse(svg ? style.fill : style.color)), back = luminance(behind(e));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    texts++;
    if (ratio < 4.5) wrong.push("contrast " + ratio.toFixed(2) + ": " + e.textContent.trim().slice(0, 40));
  }
  if (texts < 30) wrong.push("only " + texts + " texts");
  for (const e of document.querySelectorAll("a, button, [role=img], [role=region], section")) {
    const by = e.getAttribute("aria-labelledby");
    const name = e.getAttribute("aria-label") || (by ? document.getElementById(by)?.textContent : e.textContent);
    if (!name || !name.trim()) wrong.push("no name: " + e.outerHTML.slice(0, 60));
  }
  for (const name of ["--one", "--two", "--three"]) {
    const probe = document.createElement("i");
    probe.style.color = "var(" + name + ")";
    document.querySelector("section").append(probe);
    const front = luminance(parse(getComputedStyle(probe).color)), back = luminance(behind(probe));
    if ((Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05) < 3) wrong.push("lines in " + name + " are faint");
    probe.remove();
  }
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id is taken twice");
  if (document.querySelectorAll("h1").length !== 1 || !document.querySelector("main") || !document.documentElement.lang) wrong.push("no h1, main or lang");
  return wrong;
})()`

func TestDashboardInABrowser(t *testing.T) {
	servers := harnesstest.Shards(t, harness.Options{Shards: 3, Private: true})
	_, addr, stop := serve(t, "goredis", servers)
	b := openBrowser(t)
	url := "http://" + addr + "/"

	loading, enough := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer enough()
	for range 4 {
		wg.Go(func() {
			keys := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), 0)), 1.1, 1, 2000)
			for loading.Err() == nil {
				key := url + fmt.Sprint("cache/k", keys.Uint64())
				if status, _, _ := ask(http.MethodGet, key, ""); status == 404 {
					ask(http.MethodPut, key, `{"value": "v"}`)
				}
			}
		})
	}

	wg.Go(func() { // what is nowhere is asked of its shard each time
		keys := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), 0)), 2, 1, 5)
		for loading.Err() == nil {
			ask(http.MethodGet, url+fmt.Sprintf("cache/account:%d/missing", keys.Uint64()), "")
		}
	})

	b.look(1280, 900, "light")
	b.do(chromedp.Navigate(url))
	requests := func() string { return eval[string](b, `document.querySelector("#tiles dd").textContent`) }
	within(t, time.Minute, "the page has numbers", func() bool { return requests() != "0" })
	first := requests()
	within(t, time.Minute, "the numbers live", func() bool { return requests() != first })
	within(t, time.Minute, "there are reads", func() bool { return eval[bool](b, `!!document.querySelector("#reads svg")`) })

	within(t, time.Minute, "there are hot keys", func() bool {
		return eval[bool](b, `(document.querySelector("#hot tbody")?.textContent ?? "").includes("account:0/missing")`)
	})

	t.Run("keyboard", func(t *testing.T) {
		var order []string
		for range 4 {
			b.do(chromedp.KeyEvent(kb.Tab))
			order = append(order, eval[string](b, `document.activeElement.id || document.activeElement.getAttribute("href") || document.activeElement.tagName`))
		}
		if got := strings.Join(order, " "); got != "pause shards /health /metrics" {
			t.Errorf("got the focus order %s, want pause shards /health /metrics", got)
		}
		eval[chromedp.Void](b, `document.querySelector("#shards").focus()`)
		now := requests()
		within(t, time.Minute, "the page is refreshed", func() bool { return requests() != now })
		if id := eval[string](b, `document.activeElement.id`); id != "shards" {
			t.Errorf("the refresh moved the focus to %q", id)
		}
		eval[chromedp.Void](b, `document.querySelector("#pause").focus()`)
		b.do(chromedp.KeyEvent(kb.Enter))
		if !eval[bool](b, `document.querySelector("#pause").getAttribute("aria-pressed") === "true"`) {
			t.Error("Enter does not pause")
		}
		b.do(chromedp.KeyEvent(kb.Enter))
	})

	for _, size := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1280, 900}, {"phone", 360, 740}} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size.width, size.height, scheme)
			for _, wrong := range eval[[]string](b, audit) {
				t.Errorf("%s, %s: %s", size.name, scheme, wrong)
			}
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > size.width {
				t.Errorf("%s: the page is %d wide", size.name, wide)
			}
			b.shoot(size.name + "-" + scheme)
		}
	}
	b.look(1280, 900, "light")

	if err := servers.Nodes()[1].Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	within(t, time.Minute, "the killed shard is out, and red", func() bool {
		return eval[bool](b, `(() => { const e = document.querySelector("#shards .out"); if (!e) return false;
			const [r, g, b] = getComputedStyle(e).color.match(/\d+/g).map(Number); return r > 2 * g && r > 2 * b && e.closest("tr").textContent.includes("shard-2"); })()`)
	})
	t.Logf("red %v after the kill", time.Since(killed).Round(time.Millisecond))
	b.shoot("shard-out")
	if err := servers.Nodes()[1].Restart(t.Context(), harness.Empty); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the shard is back", func() bool { return eval[bool](b, `document.querySelectorAll("#shards .serving").length === 3`) })

	b.mu.Lock()
	for _, asked := range b.requests {
		if !strings.HasPrefix(asked, url) && asked != "data:," {
			t.Errorf("the page asked for %s", asked)
		}
	}
	if len(b.requests) < 4 {
		t.Errorf("only %d requests were seen", len(b.requests))
	}
	if len(b.complaints) > 0 {
		t.Errorf("the browser complains: %q", b.complaints)
	}
	b.mu.Unlock()

	enough()
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
	stop()
	within(t, time.Minute, "the page says that the proxy is gone", func() bool {
		return eval[bool](b, `!document.querySelector("#gone").hidden && /does not answer.*\d\d:\d\d:\d\d UTC/.test(document.querySelector("#gone").textContent)`)
	})
	b.shoot("gone")
}
