package runs

import (
	"net/http"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
)

// artifact is a file of a run as our API shows it.
type artifact struct {
	Path     string `json:"path"`
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	URL      string `json:"url"` // a link that ends
}

// artifactRoutes returns the routes of the files of runs.
func (a API) artifactRoutes() (routes []access.Route) {
	for _, prefix := range []string{"", "/api/v1"} {
		routes = append(routes, a.reads("GET "+prefix+"/runs/{runId}/artifacts", API.listArtifacts))
	}
	return routes
}

// listArtifacts responds with the files of a run: GET /runs/{runId}/artifacts. Those that its agent has made are below
// out/, those of the messages that it answers below files/, and those of its workstreams below files/{launchId}/.
func (a API) listArtifacts(w http.ResponseWriter, r *http.Request, run string) error {
	if run == "" { // it has not begun
		return exchange.Respond(w, http.StatusOK, map[string]any{"artifacts": []artifact{}})
	}
	page, err := a.Runs.RunEvents(r.Context(), run, 0, 0)
	if err != nil {
		return err
	}
	files, err := a.Runs.Artifacts(r.Context(), run)
	if err != nil {
		return err
	}
	list := make([]artifact, len(files))
	for i, f := range files {
		list[i] = artifact{Path: f.Path, Name: f.File.Name, MimeType: f.File.MimeType, Size: f.File.Size}
		if list[i].URL, err = a.Threads.Storage.Sign(r.Context(), page.Workspace, f.File); err != nil {
			return err
		}
	}
	return exchange.Respond(w, http.StatusOK, map[string]any{"artifacts": list})
}
