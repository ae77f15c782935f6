package nodelogs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// queryTimeout bounds a query, with all its services.
const queryTimeout = 30 * time.Second

// Config says what is served.
type Config struct {
	// Dir is the directory of logs; stock /var/log. Required.
	Dir string
	// Query allows log queries. Off: only files.
	Query bool
}

// Runner runs a command of the host.
type Runner interface {
	// Run writes what the command says, to the last, and returns when it ended
	// or ctx did. Called concurrently.
	Run(ctx context.Context, out io.Writer, name string, args ...string) error
}

// Commands runs them as children of this process.
func Commands() Runner { return commands{} }

type commands struct{}

func (commands) Run(ctx context.Context, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// Handler serves the logs below the path that its route ends with. Use New.
type Handler struct {
	cfg   Config
	files http.Handler
	run   Runner
	log   *slog.Logger
}

// New checks the configuration.
func New(cfg Config, run Runner, log *slog.Logger) (*Handler, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("nodelogs: Dir %q: must be an absolute path", cfg.Dir)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Handler{cfg: cfg, files: http.FileServer(folder{cfg.Dir}), run: run, log: log}, nil
}

// ServeHTTP serves /logs/ and what is below.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.StripPrefix("/logs/", http.HandlerFunc(h.serve)).ServeHTTP(w, r)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	if !h.cfg.Query {
		h.files.ServeHTTP(w, r)
		return
	}
	q, err := parse(r.URL.Query())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case q == nil:
		h.files.ServeHTTP(w, r)
		return
	case r.URL.Path != "" && r.URL.Path != "/":
		http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
		return
	}
	if err := q.validate(); err != nil {
		http.Error(w, err.Error(), http.StatusNotAcceptable)
		return
	}
	if len(q.files) == 1 {
		h.file(w, r, q.files[0])
		return
	}
	h.services(w, r, q)
}

// file serves one file by a query. Clients on Windows write backslashes.
func (h *Handler) file(w http.ResponseWriter, r *http.Request, name string) {
	r.URL.Path = strings.ReplaceAll(name, `\`, "/")
	r.URL.RawPath = ""
	h.files.ServeHTTP(w, r)
}

// services serves what the journal has of some services, or their files where
// it has nothing.
func (h *Handler) services(w http.ResponseWriter, r *http.Request, q *query) {
	ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
	var out io.Writer = w
	if r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		packer := gzip.NewWriter(w)
		defer func() { _ = packer.Close() }() // the client is gone: nobody to tell
		out = packer
	}
	journal, files := h.split(ctx, q.services)
	if len(journal) > 0 {
		h.journal(ctx, out, q, journal)
	}
	switch {
	case len(files) > 0 && !q.empty():
		fmt.Fprintf(out, "\noptions present and query resolved to log files for %v\ntry without specifying options\n", files)
	default:
		for _, service := range files {
			h.serviceFile(ctx, out, service)
		}
	}
}

// split tells the services that the journal knows from those that it does not.
func (h *Handler) split(ctx context.Context, services []string) (journal, files []string) {
	var units strings.Builder
	if err := h.run.Run(ctx, &units, "journalctl", "--field", "_SYSTEMD_UNIT"); err != nil {
		return nil, services // no journal here
	}
	known := map[string]bool{}
	for unit := range strings.SplitSeq(units.String(), "\n") {
		known[strings.TrimSpace(unit)] = true
	}
	for _, s := range services {
		if known[s] || known[s+".service"] {
			journal = append(journal, s)
		} else {
			files = append(files, s)
		}
	}
	return journal, files
}

func (h *Handler) journal(ctx context.Context, out io.Writer, q *query, services []string) {
	err := h.run.Run(ctx, out, "journalctl", q.journalArgs(services)...)
	var said *exec.ExitError
	if err == nil || errors.As(err, &said) {
		return // journalctl has said itself what is wrong
	}
	h.log.Warn("a log query failed", "services", services, "err", err)
	fmt.Fprint(out, "\nerror: journal output not available\n")
}

// serviceFile writes the first file that may be the service's log.
func (h *Handler) serviceFile(ctx context.Context, out io.Writer, service string) {
	for _, name := range []string{service, service + ".log", service + "/" + service + ".log"} {
		err := h.copyFile(ctx, out, name)
		switch {
		case err == nil:
			return
		case !errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(out, "\nerror getting log for %s: %v\n", service, err)
			return
		}
	}
	fmt.Fprintf(out, "\nlog not found for %s\n", service)
}

func (h *Handler) copyFile(ctx context.Context, out io.Writer, name string) error {
	file, err := folder{h.cfg.Dir}.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() { // the log of service x may be x/x.log
		return fs.ErrNotExist
	}
	_, err = io.Copy(out, untilDone{ctx, file})
	return err
}

// untilDone is a reader that ends with a context.
type untilDone struct {
	ctx context.Context //nolint:containedctx // of the copy that the reader is made for
	io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}
