// Package nodelogs serves the log files of the machine under /logs/, and where
// that is allowed the answers to log queries: a service's journal or a file.
//
//	GET /logs/                                   the files of /var/log
//	GET /logs/containers/web.log                 one of them
//	GET /logs/?query=kubelet&tailLines=100       what the journal has of a service
//	GET /logs/?query=/kubelet.log                a file
//
// A use:
//
//	logs, err := nodelogs.New(nodelogs.Config{Dir: "/var/log", Query: true}, nodelogs.Commands(), log)
//	route := server.Route{Pattern: "/logs/", Handler: logs}
//
// Nothing outside of the directory is served: a symlink that leads out of it is
// answered as forbidden, whoever made it, and so is what is neither a file nor a
// directory. Rules for callers: ask for authorization first ("nodes/log");
// whoever may ask reads all logs of the machine.
package nodelogs
