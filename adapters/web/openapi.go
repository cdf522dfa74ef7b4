package web

import (
	_ "embed" // openapiYAML
	"encoding/json"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"parley/adapters/web/exchange"
)

//go:embed openapi.yaml
var openapiYAML []byte

// openapiJSON returns the description of all routes.
var openapiJSON = sync.OnceValues(func() ([]byte, error) {
	var document any
	if err := yaml.Unmarshal(openapiYAML, &document); err != nil {
		return nil, err
	}
	return json.Marshal(document)
})

// OpenAPI responds with the description of all routes of the daemon: GET /openapi.json. It needs
// no token, because it is the same everywhere.
func OpenAPI(w http.ResponseWriter, _ *http.Request) {
	document, err := openapiJSON()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError) // a test proves that it has no fault
		return
	}
	_ = exchange.Respond(w, http.StatusOK, json.RawMessage(document))
}
