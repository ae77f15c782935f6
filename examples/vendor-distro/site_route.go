package main

import (
	"io"
	"net/http"

	"nodekit.dev/node/nodefx"
)

// siteRoute serves the site's name on the agent's local socket.
func siteRoute() nodefx.Option {
	return nodefx.AddHTTPRoute("GET /site", func(s Site) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, s.Name) // the client is gone: nobody to tell
		}
	})
}
