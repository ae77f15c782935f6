// Web is the server in the test images: it serves a folder and, by its flags,
// behaves as badly as a test needs (slow to start, deaf to SIGTERM, ending by
// itself with an exit code).
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

type options struct {
	addr       string
	grpcAddr   string
	root       string
	startDelay time.Duration
	termDelay  time.Duration
	ignoreTerm bool
	exitAfter  time.Duration
	exitCode   int
}

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", ":8080", "where to listen")
	flag.StringVar(&o.grpcAddr, "grpc-addr", "", "where to serve gRPC's health service; empty: nowhere")
	flag.StringVar(&o.root, "root", "/srv", "folder to serve")
	flag.DurationVar(&o.startDelay, "start-delay", 0, "wait this long before listening")
	flag.DurationVar(&o.termDelay, "term-delay", 0, "take this long to end after SIGTERM")
	flag.BoolVar(&o.ignoreTerm, "ignore-term", false, "do not end on SIGTERM")
	flag.DurationVar(&o.exitAfter, "exit-after", 0, "end by itself after this long; 0: never")
	flag.IntVar(&o.exitCode, "exit-code", 0, "exit code when it ends by itself or on SIGTERM")
	flag.Parse()
	code, err := run(o)
	if err != nil {
		log.Print(err)
	}
	os.Exit(code)
}

// run serves until something ends it, and says with which code to exit.
func run(o options) (int, error) {
	term := make(chan os.Signal, 4)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	exit := make(chan int, 4) // asked for by a request to /exit
	failed := make(chan error, 1)
	time.AfterFunc(o.startDelay, func() { failed <- serve(o, exit) })

	var alarm <-chan time.Time
	if o.exitAfter > 0 {
		alarm = time.After(o.exitAfter)
	}
	for {
		select {
		case s := <-term:
			log.Printf("got %v", s)
			if o.ignoreTerm {
				continue
			}
			<-time.After(o.termDelay)
			return o.exitCode, nil
		case <-alarm:
			return o.exitCode, nil
		case code := <-exit:
			return code, nil
		case err := <-failed:
			return 1, err
		}
	}
}

// serve blocks. /healthz turns to 500 and back with a POST to /healthz/toggle,
// and what gRPC's health service says with it; POST /exit?code=N ends the server.
func serve(o options, exit chan<- int) error {
	var sick atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(o.root)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprintln(w, !sick.Load())
	})
	mux.HandleFunc("POST /healthz/toggle", func(http.ResponseWriter, *http.Request) {
		sick.Store(!sick.Load())
	})
	mux.HandleFunc("POST /exit", func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.URL.Query().Get("code"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		exit <- code
	})
	if o.grpcAddr != "" {
		go func() { log.Print(serveGRPC(o.grpcAddr, &sick)) }()
	}
	log.Printf("listening on %s", o.addr)
	server := &http.Server{Addr: o.addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}
