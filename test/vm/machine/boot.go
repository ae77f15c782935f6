package machine

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nodekit.dev/test/integration/daemon"
)

// Config says what to boot.
type Config struct {
	// Files is a tar that is laid over the root file system.
	Files string
	// Unit is one of systemd's that is started with the machine, beside those
	// that are enabled.
	Unit string
	// Console is a file for what the kernel and systemd print; it is made anew.
	Console string
}

// Machine is a machine that runs. Its methods are called from one goroutine.
type Machine struct {
	// Output is what the guest writes to /dev/ttyS1. It ends with the machine;
	// read it to its end before Wait.
	Output io.Reader

	console string
	cmd     *exec.Cmd
	said    *strings.Builder // by qemu itself
}

// memory is that of each of the two NUMA nodes; each has two of the four CPUs.
const memory = "1536M"

// Start boots a machine, which ctx ends the hard way. It returns at once.
func Start(ctx context.Context, c Config) (*Machine, error) {
	dir, err := imageDir()
	if err != nil {
		return nil, err
	}
	m := &Machine{console: c.Console, said: &strings.Builder{}}
	if err := os.RemoveAll(c.Console); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	m.cmd = exec.CommandContext(ctx, "qemu-system-x86_64", arguments(dir, c, accelerator())...)
	m.cmd.Stderr = m.said
	// It does not outlive a test that is killed.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	m.cmd.WaitDelay = 5 * time.Second
	if m.Output, err = m.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	return m, nil
}

// accelerator is KVM where this machine has it.
func accelerator() string {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return "tcg,thread=multi"
	}
	f.Close()
	return "kvm"
}

func arguments(image string, c Config, accelerator string) []string {
	disk := "if=virtio,format=raw,file="
	return []string{
		// No five levels of page tables: emulated, each level costs.
		"-accel", accelerator, "-cpu", "max,la57=off", "-smp", "4", "-m", "3G",
		"-object", "memory-backend-ram,id=m0,size=" + memory, "-numa", "node,nodeid=0,cpus=0-1,memdev=m0",
		"-object", "memory-backend-ram,id=m1,size=" + memory, "-numa", "node,nodeid=1,cpus=2-3,memdev=m1",
		"-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(image, kernelFile), "-initrd", filepath.Join(image, initrdFile),
		// A panic is a reboot at once, and so the end.
		"-append", "console=ttyS0 loglevel=4 systemd.show_status=1 panic=-1 systemd.wants=" + c.Unit,
		"-drive", disk + filepath.Join(image, rootFile) + ",snapshot=on",
		"-drive", disk + c.Files + ",readonly=on",
		"-device", "virtio-rng-pci",
		"-serial", "file:" + c.Console, "-serial", "stdio",
	}
}

// Wait waits until the machine is off. That it was ended is an error.
func (m *Machine) Wait() error {
	if err := m.cmd.Wait(); err != nil {
		return fmt.Errorf("machine: qemu: %w\n%s", err, m.said)
	}
	return nil
}

// ConsoleTail are the last lines of the console.
func (m *Machine) ConsoleTail(lines int) string { return daemon.Tail(m.console, lines) }
