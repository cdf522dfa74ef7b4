package console_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"parley/adapters/browsertest"
)

// picture is a page of the documentation's pictures. do is a step before the picture; empty for none.
type picture struct{ name, path, do string }

var pictures = []picture{
	{"overview", "/", ""}, {"threads", "/threads", ""}, {"thread", "/threads/" + shownThread, ""}, {"why", "/why?ref=" + roomID + "/" + passiveTS, ""}, {"runs", "/runs", ""},
	{"run", "/runs/" + doneRun, ""}, {"deliveries", "/deliveries", ""}, {"delivery", "/deliveries/2", `document.querySelector("details.act").open = true`}, {"dead", "/dead", ""},
	{"letter", "/dead/1", ""}, {"workspace", "/workspaces/acme", ""}, {"agents", "/agents", ""}, {"approvals", "/approvals", `document.querySelector("details.act").open = true`},
	{"try", "/try", `document.querySelector("textarea").value = "when did we water them last?"; document.querySelector("[data-test=try-send]").click()`},
	{"schedules", "/schedules", ""}, {"search", "/search?q=tomatoes", ""}, {"log", "/log", ""}, {"audit", "/audit", ""},
}

// theme makes the browser prefer light or dark pages.
func theme(tab *browsertest.Tab, name string) {
	tab.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return chromedp.Void{}, err
	})
}

// tooWide are the elements that a reader would have to scroll to the side for, or whose text leaves its box.
const tooWide = `Array.from(document.querySelectorAll("body *"))
	.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .visually-hidden, .skip"))
	.map(e => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40))`

// pale are the texts whose contrast with their ground is less than 4.5.
const pale = `(() => {
	const parse = c => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return parse(getComputedStyle(document.documentElement).backgroundColor); };
	return Array.from(document.querySelectorAll("body *")).filter(e => Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim()) || e.matches("input, select, textarea")).map(e => {
		const [a, b] = [light(parse(e.matches("text") ? getComputedStyle(e).fill : getComputedStyle(e).color)), light(ground(e))];
		return [e, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
	}).filter(([, contrast]) => contrast < 4.5).map(([e, contrast]) => contrast.toFixed(2) + " " + e.tagName + "." + e.className);
})()`

//go:generate sh -c "mkdir -p ../../../../.github/pictures/console && PARLEY_TEST_SCREENSHOTS=$(realpath ../../../../.github/pictures/console) go test -count=1 -run ^TestPictures$ ."

// TestPictures opens each page, light and dark, wide and narrow: nothing needs a scroll to the side. With a folder for
// screenshots, it makes the pictures of the documentation.
func TestPictures(t *testing.T) {
	base := time.Now()
	s := filled(t, base)
	door := browsertest.Open(t)
	door.Size(1280, 800)
	door.Goto(s.address + "/login")
	door.Screenshot("login-light-1280")
	shrink(t, "login-light-1280")
	tab := s.enter(t)
	for _, look := range []string{"light", "dark"} {
		theme(tab, look)
		for _, width := range []int64{1280, 360} {
			tab.Size(width, 800)
			for _, p := range pictures {
				tab.Goto(s.inside + p.path)
				if p.do != "" {
					browsertest.Eval[any](tab, "void ("+"(() => {"+p.do+"})()"+")")
				}
				if p.name == "try" {
					tab.Wait(`document.querySelector("[data-test=try-answer]")`)
				}
				name := fmt.Sprintf("%s-%s-%d", p.name, look, width)
				if wide := browsertest.Eval[[]string](tab, tooWide); len(wide) > 0 {
					t.Errorf("%s is too wide: %q", name, wide)
				}
				if scroll := browsertest.Eval[[]string](tab, `Array.from(document.querySelectorAll(".scroll")).filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent.slice(0, 60))`); len(scroll) > 0 {
					t.Errorf("%s scrolls to the side: %q", name, scroll)
				}
				if n := browsertest.Eval[int](tab, "document.documentElement.scrollWidth"); n > int(width) {
					t.Errorf("%s has %d pixels", name, n)
				}
				if list := browsertest.Eval[[]string](tab, pale); len(list) > 0 {
					t.Errorf("%s is pale: %q", name, list)
				}
				tab.Screenshot(name)
				shrink(t, name)
			}
		}
	}
}

// shrink gives the screenshot a palette, so that the folder stays small.
func shrink(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv(browsertest.Pictures)
	if folder == "" {
		return
	}
	file := filepath.Join(folder, name+".png")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.RGBA]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	const colours = 64
	var palette color.Palette
	for len(palette) < colours && len(count) > 0 {
		var most color.RGBA
		n := 0
		for c, k := range count {
			if k > n || k == n && less(c, most) {
				most, n = c, k
			}
		}
		delete(count, most)
		palette = append(palette, most)
	}
	small := image.NewPaletted(full.Bounds(), palette)
	near := map[color.RGBA]uint8{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			c := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
			i, ok := near[c]
			if !ok {
				i = uint8(palette.Index(c))
				near[c] = i
			}
			small.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func less(a, b color.RGBA) bool {
	return slices.Compare([]uint8{a.R, a.G, a.B}, []uint8{b.R, b.G, b.B}) < 0
}
