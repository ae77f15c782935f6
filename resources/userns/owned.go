package userns

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// kubeletUser is whose subordinate IDs are given away.
const kubeletUser = "kubelet"

// Runner runs a command of the host and returns how it ended and what it wrote.
// An error says that it could not be run; one that matches exec.ErrNotFound,
// that there is no such command.
type Runner interface {
	Run(ctx context.Context, name string, args ...string) (exit int, output []byte, err error)
}

// Owned makes a Config.Owned that asks getsubids for the IDs of the user
// "kubelet". Where there is no such user or no such command, all IDs but the
// first idsPerPod are the agent's; 0 means 65536. A user whose IDs can not be
// had is an error: they may come from a server that is away.
func Owned(run Runner, idsPerPod int64) func(ctx context.Context) (IDs, error) {
	if idsPerPod == 0 {
		idsPerPod = unit
	}
	all := IDs{First: uint32(idsPerPod), Length: -uint32(idsPerPod)}
	return func(ctx context.Context) (IDs, error) {
		var unknown user.UnknownUserError
		if _, err := user.Lookup(kubeletUser); errors.As(err, &unknown) {
			return all, nil
		} else if err != nil {
			return IDs{}, err
		}
		return subIDs(ctx, run, all)
	}
}

func subIDs(ctx context.Context, run Runner, all IDs) (IDs, error) {
	users, err := getSubIDs(ctx, run, kubeletUser)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return all, nil
	case err != nil:
		return IDs{}, fmt.Errorf("error retrieving additional uids for user %q: %w", kubeletUser, err)
	}
	groups, err := getSubIDs(ctx, run, "-g", kubeletUser)
	if err != nil {
		return IDs{}, fmt.Errorf("error retrieving additional gids for user %q: %w", kubeletUser, err)
	}
	if users != groups {
		return IDs{}, fmt.Errorf("mismatched subuids and subgids for user %q", kubeletUser)
	}
	return parseSubIDs(users)
}

func getSubIDs(ctx context.Context, run Runner, args ...string) (string, error) {
	exit, output, err := run.Run(ctx, "getsubids", args...)
	if err == nil && exit != 0 {
		err = fmt.Errorf("getsubids ended with exit code %d: %s", exit, strings.TrimSpace(string(output)))
	}
	return string(output), err
}

// parseSubIDs reads the one line "0: kubelet 65536 2147483648".
func parseSubIDs(out string) (IDs, error) {
	words := strings.Fields(out)
	if len(words) != 4 || strings.Contains(strings.Trim(out, "\n"), "\n") {
		return IDs{}, fmt.Errorf("error parsing line %q: want one line of INDEX USER FIRST COUNT", out)
	}
	first, err := strconv.ParseUint(words[2], 10, 32)
	if err != nil {
		return IDs{}, fmt.Errorf("error parsing line %q: %w", out, err)
	}
	length, err := strconv.ParseUint(words[3], 10, 32)
	if err != nil {
		return IDs{}, fmt.Errorf("error parsing line %q: %w", out, err)
	}
	return IDs{First: uint32(first), Length: uint32(length)}, nil
}
