package browsertest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Element is an element of a page.
type Element struct {
	tab  *Tab
	name string // in failures
	id   runtime.RemoteObjectID
}

// findAll is a function that returns the elements of a selector, in the order of the document. It also
// looks into open shadow trees.
const findAll = `function(selector) {
	const found = [], look = root => root.querySelectorAll('*').forEach(e => {
		if (e.matches(selector)) found.push(e);
		if (e.shadowRoot) look(e.shadowRoot);
	});
	look(document);
	return found;
}`

// Find waits for the first element that a CSS selector matches, in the document or in an open
// shadow tree, and returns it.
func (tab *Tab) Find(selector string) *Element {
	tab.t.Helper()
	call := fmt.Sprintf("(%s)(%s)[0]", findAll, strconv.Quote(selector))
	tab.Wait(call)
	object := run(tab, "find "+selector, chromedp.Evaluate[*runtime.RemoteObject](call))
	return &Element{tab: tab, name: selector, id: object.ObjectID}
}

// Count returns how many elements a CSS selector matches now, in the document and in open shadow trees.
func (tab *Tab) Count(selector string) int {
	tab.t.Helper()
	return Eval[int](tab, fmt.Sprintf("(%s)(%s).length", findAll, strconv.Quote(selector)))
}

// Texts returns the visible texts of all elements that a CSS selector matches now, in the document and
// in open shadow trees.
func (tab *Tab) Texts(selector string) []string {
	tab.t.Helper()
	return Eval[[]string](tab, fmt.Sprintf("(%s)(%s).map(e => e.innerText)", findAll, strconv.Quote(selector)))
}

// Role waits for the element with a role and an accessible name, as assistive technology sees them,
// and returns it. The test fails if there are several.
func (tab *Tab) Role(role, name string) *Element {
	tab.t.Helper()
	what := fmt.Sprintf("%s %q", role, name)
	id := run(tab, "find "+what, func(ctx context.Context, t *chromedp.Target) (runtime.RemoteObjectID, error) {
		for {
			nodes, err := byRole(ctx, t, role, name)
			switch {
			case err != nil:
				return "", err
			case len(nodes) > 1:
				return "", fmt.Errorf("there are %d", len(nodes))
			case len(nodes) == 1:
				found, err := cdp.Call(ctx, t, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: nodes[0]})
				if err != nil {
					return "", err
				}
				return found.Object.ObjectID, nil
			}
			select {
			case <-time.After(pollEvery):
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	})
	return &Element{tab: tab, name: what, id: id}
}

// byRole returns the elements with a role and a name that are not hidden.
func byRole(ctx context.Context, t *chromedp.Target, role, name string) (nodes []cdp.BackendNodeID, err error) {
	document, err := cdp.Call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: "document"})
	if err != nil {
		return nil, err
	}
	tree, err := cdp.Call(ctx, t, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: document.Result.ObjectID, Role: role, AccessibleName: name})
	for _, n := range tree.Nodes {
		if !n.Ignored {
			nodes = append(nodes, n.BackendDOMNodeID)
		}
	}
	return nodes, err
}

// Click scrolls the element into view and presses the mouse at its middle.
func (e *Element) Click() {
	e.tab.t.Helper()
	run(e.tab, "click "+e.name, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		if _, err := cdp.Call(ctx, t, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{ObjectID: e.id}); err != nil {
			return chromedp.Void{}, err
		}
		shape, err := cdp.Call(ctx, t, dom.GetContentQuads, dom.GetContentQuadsParams{ObjectID: e.id})
		if err != nil {
			return chromedp.Void{}, err
		}
		if len(shape.Quads) == 0 {
			return chromedp.Void{}, fmt.Errorf("it has no place on the page")
		}
		q := shape.Quads[0] // the corners: x, y of each
		return chromedp.MouseClickXY((q[0]+q[4])/2, (q[1]+q[5])/2)(ctx, t)
	})
}

// Type focuses the element and enters a text at its cursor.
func (e *Element) Type(text string) {
	e.tab.t.Helper()
	run(e.tab, "type in "+e.name, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		if _, err := cdp.Call(ctx, t, dom.Focus, dom.FocusParams{ObjectID: e.id}); err != nil {
			return cdp.Empty{}, err
		}
		return cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
	})
}

// Upload sets the files of a file input, by their paths.
func (e *Element) Upload(paths ...string) {
	e.tab.t.Helper()
	run(e.tab, "choose files in "+e.name, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: e.id})
	})
}

// Text returns the visible text of the element.
func (e *Element) Text() string {
	e.tab.t.Helper()
	return run(e.tab, "read "+e.name, func(ctx context.Context, t *chromedp.Target) (string, error) {
		result, err := cdp.Call(ctx, t, runtime.CallFunctionOn, runtime.CallFunctionOnParams{FunctionDeclaration: "function() { return this.innerText }", ObjectID: e.id})
		if err != nil {
			return "", err
		}
		return strconv.Unquote(string(result.Result.Value))
	})
}
