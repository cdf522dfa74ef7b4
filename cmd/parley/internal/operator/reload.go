package operator

import (
	"context"

	"parley/config"
)

var reloadRoutes = []Route{
	{Pattern: "POST reload", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var in struct{ Note string }
		if err := c.Bind(&in); err != nil {
			return nil, err
		}
		return s.Reload(c.Context(), c.Write(in.Note))
	}},
}

// Reloaded is the result of a reload.
type Reloaded struct {
	// Applied is false if the files have a fault: the last good configuration stays then.
	Applied bool    `json:"applied"`
	Faults  []Fault `json:"faults"`
	// Changed are the keys whose values have changed, with the workspace before a key of its file.
	Changed []string `json:"changed"`
	// Restart are those of them that take effect only at the next start.
	Restart []string `json:"restart"`
}

// Fault is one fault of a configuration file.
type Fault struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Key   string `json:"key"` // empty for the whole file
	Words string `json:"words"`
}

// String returns file:line: key: words.
func (f Fault) String() string { return config.Fault(f).String() }

// FaultsOf returns the faults of a configuration.
func FaultsOf(list config.Faults) []Fault {
	faults := make([]Fault, len(list))
	for i, f := range list {
		faults[i] = Fault(f)
	}
	return faults
}

// Reload reads the configuration of the running daemon again.
func (s *Service) Reload(ctx context.Context, w Write) (Reloaded, error) {
	if err := s.needsLive("a reload"); err != nil {
		return Reloaded{}, err
	}
	return audited(ctx, s, w, "reload", "", s.Live.Reload)
}

// Reload reads the configuration of the running daemon again.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	return Post[Reloaded](ctx, c, "reload", nil)
}
