package runtimetest

import (
	"strconv"
	"strings"
	"time"
)

// interpret turns a command into what it would do. The commands are those
// that the contract tests use, so that one suite runs on a World and on a real
// runtime.
func interpret(command []string) Behaviour {
	if len(command) == 0 {
		return Behaviour{}
	}
	name := strings.TrimPrefix(strings.TrimPrefix(command[0], "/bin/"), "/usr/bin/")
	switch {
	case strings.HasPrefix(command[0], "/does-not-exist"):
		return Behaviour{StartError: errNoSuchFile}
	case name == "sh" && len(command) == 3 && command[1] == "-c":
		return shell(command[2])
	case name == "true", name == "false", name == "sleep":
		return shell(strings.Join(command, " "))
	}
	return Behaviour{}
}

// shell runs a script of statements in its head. A process without a trap is
// PID 1 of its namespace and so ignores TERM.
func shell(script string) Behaviour {
	s := shellState{does: Behaviour{IgnoresTERM: true}}
	for _, statement := range statements(script) {
		if s.step(statement) {
			break
		}
	}
	if !s.endless {
		s.does.RunFor = s.slept + AtOnce
	}
	return s.does
}

type shellState struct {
	does    Behaviour
	slept   time.Duration
	nap     time.Duration // of the command in the background
	endless bool
}

// step runs one statement and says whether the script ends with it.
func (s *shellState) step(statement []string) bool {
	s.does.ExitCode = 0
	switch statement[0] {
	case "exit":
		s.does.ExitCode = exitArgument(statement)
		return true
	case "sleep":
		d, endless := sleepArgument(statement)
		if statement[len(statement)-1] == "&" {
			s.nap = d
			return false
		}
		s.slept += d
		s.endless = endless
		return endless
	case "wait":
		s.slept += s.nap
		return false
	case "trap":
		s.trap(statement)
	case "echo":
		s.echo(statement[1:])
	case "true":
	case "false":
		s.does.ExitCode = 1
	default: // a program that the World does not know runs until it is stopped
		s.endless, s.does.IgnoresTERM = true, false
		return true
	}
	return false
}

// trap knows the handlers of TERM that are empty, or print and exit.
func (s *shellState) trap(statement []string) {
	if len(statement) != 3 || statement[2] != "TERM" || statement[1] == "" {
		return
	}
	s.does.IgnoresTERM = false
	for _, handler := range statements(statement[1]) {
		switch handler[0] {
		case "echo":
			s.does.TermOutput = append(s.does.TermOutput, Line{Text: strings.Join(handler[1:], " ")})
		case "exit":
			s.does.TermCode = exitArgument(handler)
			return
		}
	}
}

func (s *shellState) echo(words []string) {
	to := ""
	for i, word := range words {
		if strings.HasPrefix(word, ">") {
			to, words = strings.TrimLeft(strings.Join(words[i:], ""), "> "), words[:i]
			break
		}
	}
	text := strings.Join(words, " ")
	switch to {
	case "", "&2":
		s.does.Output = append(s.does.Output, Line{Text: text, Stderr: to == "&2"})
	case "/dev/termination-log":
		s.does.Message = text + "\n"
	}
}

func exitArgument(statement []string) int32 {
	if len(statement) < 2 {
		return 0
	}
	code, err := strconv.ParseInt(statement[1], 10, 32)
	if err != nil {
		return 2 // what a shell makes of an illegal number
	}
	return int32(code & 0xff)
}

func sleepArgument(statement []string) (d time.Duration, endless bool) {
	if len(statement) < 2 {
		return 0, false
	}
	if statement[1] == "infinity" {
		return 0, true
	}
	seconds, err := strconv.ParseFloat(statement[1], 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), false
}

// statements splits a script at semicolons and line ends and its statements
// into words; single and double quotes hold words together, and an ampersand
// ends a statement whose last word it is.
func statements(script string) [][]string {
	var (
		all    [][]string
		words  []string
		word   strings.Builder
		quote  rune
		inWord bool
	)
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endStatement := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	previous := rune(0)
	for _, r := range script {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ';' || r == '\n':
			endStatement()
		case r == '&' && previous != '>':
			endWord()
			words = append(words, "&")
			endStatement()
		case r == ' ' || r == '\t':
			endWord()
		default:
			word.WriteRune(r)
			inWord = true
		}
		previous = r
	}
	endStatement()
	return all
}
