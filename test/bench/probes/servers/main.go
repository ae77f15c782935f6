// Servers answers HTTP on half of its ports and takes connections on the other
// half, until its standard input ends. It prints their addresses as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// ports is how many of each kind there are: a port of its own for each probe
// would need as many files, one for all would be one queue.
const ports = 20

func main() {
	log.SetOutput(io.Discard) // of connections that are reset, as is meant
	var addresses struct{ HTTP, TCP []string }
	for range ports {
		addresses.HTTP = append(addresses.HTTP, listen(serveHTTP))
		addresses.TCP = append(addresses.TCP, listen(serveTCP))
	}
	if err := json.NewEncoder(os.Stdout).Encode(addresses); err != nil {
		fail(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func listen(serve func(net.Listener) error) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	go func() { fail(serve(listener)) }()
	return listener.Addr().String()
}

func serveHTTP(l net.Listener) error {
	server := http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "fine") }),
	}
	return server.Serve(l)
}

func serveTCP(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until the other side ends it
			_ = conn.Close()
		}()
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
