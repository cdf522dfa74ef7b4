package browsertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Element is an element of a page. If the page replaces it, the element that is found in its place then acts for it.
type Element struct {
	tab  *Tab
	name string // in failures
	find chromedp.Action[runtime.RemoteObjectID]
	id   runtime.RemoteObjectID
}

// errMissing is the result of a look at a page that has no such element yet.
var errMissing = errors.New("there is no such element")

// element waits until find returns an element.
func (tab *Tab) element(name string, find chromedp.Action[runtime.RemoteObjectID]) *Element {
	tab.t.Helper()
	return &Element{tab: tab, name: name, find: find, id: run(tab, "find "+name, again(find))}
}

// use executes an action with an element, and finds the element again if the page has replaced it. The action may be
// executed several times, but succeeds once.
func use[T any](e *Element, what string, action func(ctx context.Context, t *chromedp.Target) (T, error)) T {
	e.tab.t.Helper()
	return run(e.tab, what+" "+e.name, again(func(ctx context.Context, t *chromedp.Target) (T, error) {
		value, err := action(ctx, t)
		if err != nil {
			if id, lost := e.find(ctx, t); lost == nil {
				e.id = id
			}
		}
		return value, err
	}))
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
	call := chromedp.Evaluate[*runtime.RemoteObject](fmt.Sprintf("(%s)(%s)[0]", findAll, strconv.Quote(selector)))
	return tab.element(selector, func(ctx context.Context, t *chromedp.Target) (runtime.RemoteObjectID, error) {
		object, err := call(ctx, t)
		if err == nil && (object == nil || object.ObjectID == "") {
			err = errMissing
		}
		if err != nil {
			return "", err
		}
		return object.ObjectID, nil
	})
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
	return tab.element(fmt.Sprintf("%s %q", role, name), func(ctx context.Context, t *chromedp.Target) (runtime.RemoteObjectID, error) {
		nodes, err := byRole(ctx, t, role, name)
		switch {
		case err != nil:
			return "", err
		case len(nodes) == 0:
			return "", errMissing
		case len(nodes) > 1:
			return "", final{fmt.Errorf("there are %d", len(nodes))}
		}
		found, err := cdp.Call(ctx, t, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: nodes[0]})
		if err != nil {
			return "", err
		}
		return found.Object.ObjectID, nil
	})
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

// Click waits until the page is loaded, scrolls the element into view and presses the mouse at its middle.
func (e *Element) Click() {
	e.tab.t.Helper()
	e.tab.loaded()
	q := use(e, "find the place of", func(ctx context.Context, t *chromedp.Target) (dom.Quad, error) {
		if _, err := cdp.Call(ctx, t, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{ObjectID: e.id}); err != nil {
			return nil, err
		}
		shape, err := cdp.Call(ctx, t, dom.GetContentQuads, dom.GetContentQuadsParams{ObjectID: e.id})
		if err == nil && len(shape.Quads) == 0 {
			err = errors.New("it has no place on the page")
		}
		if err != nil {
			return nil, err
		}
		return shape.Quads[0], nil // the corners: x, y of each
	})
	run(e.tab, "click "+e.name, chromedp.MouseClickXY((q[0]+q[4])/2, (q[1]+q[5])/2))
}

// Type waits until the page is loaded, focuses the element and enters a text at its cursor.
func (e *Element) Type(text string) {
	e.tab.t.Helper()
	e.tab.loaded()
	use(e, "focus", func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, t, dom.Focus, dom.FocusParams{ObjectID: e.id})
	})
	run(e.tab, "type in "+e.name, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
	})
}

// Upload waits until the page is loaded, and sets the files of a file input, by their paths.
func (e *Element) Upload(paths ...string) {
	e.tab.t.Helper()
	e.tab.loaded()
	use(e, "choose files in", func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: e.id})
	})
}

// Text returns the visible text of the element.
func (e *Element) Text() string {
	e.tab.t.Helper()
	return use(e, "read", func(ctx context.Context, t *chromedp.Target) (string, error) {
		result, err := cdp.Call(ctx, t, runtime.CallFunctionOn, runtime.CallFunctionOnParams{FunctionDeclaration: "function() { return this.innerText }", ObjectID: e.id})
		if err != nil {
			return "", err
		}
		return strconv.Unquote(string(result.Result.Value))
	})
}
