package privilege

import "testing"

// process is the token of a process that also knows its groups, as those of
// Windows do.
type process struct {
	elevated, administrator bool
	askedForGroups          *bool
}

func (p process) IsElevated() bool { return p.elevated }

// IsMember is what the stock kubelet asked once.
func (p process) IsMember(string) (bool, error) {
	*p.askedForGroups = true
	return p.administrator, nil
}

// TestElevation: it alone counts. An administrator's process that was not
// elevated has no rights; that of a service account has, as a member of nothing.
func TestElevation(t *testing.T) {
	asked := false
	for _, row := range []struct{ elevated, administrator, fails bool }{
		{true, true, false}, {true, false, false}, {false, true, true}, {false, false, true},
	} {
		err := checkToken(process{row.elevated, row.administrator, &asked})
		if (err != nil) != row.fails || err != nil && err.Error() != "kubelet needs to run with elevated permissions!" {
			t.Errorf("elevated %v, administrator %v: %v", row.elevated, row.administrator, err)
		}
	}
	if asked {
		t.Error("group membership was asked for")
	}
}
