package rig

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
)

// Metrics returns the sums of the nodes' figures without labels, by name; none for programs without metrics.
func (n *Nodes) Metrics(ctx context.Context) map[string]float64 {
	sums := map[string]float64{}
	for _, c := range n.All {
		c.addMetrics(ctx, sums)
	}
	return sums
}

func (c *Child) addMetrics(ctx context.Context, sums map[string]float64) {
	response, err := c.Request(ctx, http.MethodGet, "/metrics", nil, "")
	if err != nil {
		return
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); response.StatusCode == http.StatusOK && lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			sums[name] += number
		}
	}
}
