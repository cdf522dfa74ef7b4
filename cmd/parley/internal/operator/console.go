package operator

import (
	"context"
	"net/http"

	"parley/config"
)

var consoleRoutes = []Route{
	{Pattern: "POST console", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) { return s.Console(c.By) }},
}

// Door is an address that logs an operator in to the console, once within a minute.
type Door struct {
	URL string `json:"url"`
}

// Console returns the way into the console for an operator.
func (s *Service) Console(by Caller) (Door, error) {
	if err := s.needsLive("the console"); err != nil {
		return Door{}, err
	}
	if s.Live.Console == nil {
		return Door{}, Fail(http.StatusConflict, "no-console", "this daemon has no console: set console.listen to a free address and start it again")
	}
	url, err := s.Live.Console(by)
	return Door{URL: url}, err
}

// Console returns the way into the console.
func (c *Client) Console(ctx context.Context) (Door, error) {
	return Post[Door](ctx, c, "console", nil)
}
