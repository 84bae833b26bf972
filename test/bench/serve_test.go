// Package bench measures what the project claims about speed and memory. Run it
// with: go test -run '^$' -bench . ./test/bench
package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"
)

// build makes the binary as the image does, without the race detector.
func build(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "zuber")
	cmd := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./cmd/zuber")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// serve starts the driver without the emulator and returns it once it answers.
func serve(b *testing.B, bin string, n int) *exec.Cmd {
	b.Helper()
	socket := filepath.Join(b.TempDir(), fmt.Sprintf("run%d", n), "cosi.sock")
	cmd := exec.CommandContext(b.Context(), bin, "serve", "--endpoint", "unix://"+socket, "--metrics-address", "127.0.0.1:0")
	cmd.Env = []string{"HOME=" + b.TempDir()}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	for {
		// gRPC's own back-off is a second: dial anew once the socket is there.
		if _, err := os.Stat(socket); err == nil {
			_, err := cosiv1alpha1.NewIdentityClient(conn).DriverGetInfo(ctx, &cosiv1alpha1.DriverGetInfoRequest{}, grpc.WaitForReady(true))
			if err != nil {
				b.Fatal(err)
			}
			return cmd
		}
		if ctx.Err() != nil {
			b.Fatal("the driver did not start")
		}
		time.Sleep(time.Millisecond) // polls for another process's file
	}
}

func stop(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatalf("the driver did not end cleanly: %v", err)
	}
}

// residentMiB reads the resident memory of a process.
func residentMiB(b *testing.B, pid int) float64 {
	b.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skipf("resident memory is read from /proc: %v", err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatal("no VmRSS in /proc/PID/status")
	return 0
}

// BenchmarkServeStart measures the time from exec to the first answered RPC,
// also as a multiple of the start of the same binary that does nothing.
func BenchmarkServeStart(b *testing.B) {
	bin := build(b)
	var serving, nothing time.Duration
	n := 0
	for b.Loop() {
		start := time.Now()
		if out, err := exec.CommandContext(b.Context(), bin, "version").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		nothing += time.Since(start)
		start = time.Now()
		cmd := serve(b, bin, n)
		serving += time.Since(start)
		b.StopTimer()
		stop(b, cmd)
		b.StartTimer()
		n++
	}
	b.ReportMetric(float64(serving.Milliseconds())/float64(n), "ms/start")
	b.ReportMetric(float64(serving)/float64(nothing), "x/version")
}

// BenchmarkServeIdleMemory measures the resident memory after the first RPC,
// also as a share of the 30 MiB that the documentation promises.
func BenchmarkServeIdleMemory(b *testing.B) {
	bin := build(b)
	total, n := 0.0, 0
	for b.Loop() {
		cmd := serve(b, bin, n)
		total += residentMiB(b, cmd.Process.Pid)
		stop(b, cmd)
		n++
	}
	b.ReportMetric(total/float64(n), "MiB-RSS")
	b.ReportMetric(total/float64(n)/30, "of-30MiB")
}
