package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"nodekit.dev/node/server"
)

// A vendor's own route stands beside those of the agent.
func Example() {
	dir, err := os.MkdirTemp("", "server")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "nodekit.sock")
	rack := server.Route{Pattern: "GET /rack", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		server.WriteJSON(w, map[string]string{"rack": "b7"})
	})}
	srv, err := server.New(server.Config{Socket: socket}, twoPods{}, nil, rack)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()

	client := overSocket(socket)
	resp, err := client.Get("http://agent/rack")
	if err == nil {
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.Status, string(body))
	}
	client.CloseIdleConnections()
	stop()
	fmt.Println(err, <-done)
	// Output:
	// 200 OK {"rack":"b7"}
	// <nil> <nil>
}
