package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// startKubernetes starts what a cluster consists of without nodes.
func (c *Cluster) startKubernetes(ctx context.Context) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	etcd, port := "http://127.0.0.1:"+ports[0], ports[1]
	c.server = "https://127.0.0.1:" + port
	c.Etcd = c.Process("etcd", c.Binaries.Etcd, []string{
		"--name=zuber", "--data-dir=" + filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync", // a crash of the machine ends the cluster anyway
		"--log-level=warn",
	}, nil, func(ctx context.Context) error { return healthy(ctx, http.DefaultClient, etcd+"/health", "") })
	certificates := filepath.Join(c.Dir, "certificates")
	signingKey, tokens := filepath.Join(c.Dir, "service-accounts.pem"), filepath.Join(c.Dir, "tokens.csv")
	if err := writeSigningKey(signingKey); err != nil {
		return err
	}
	policy := filepath.Join(c.Dir, "audit.json")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	c.token = rand.Text()
	if err := os.WriteFile(tokens, []byte(c.token+`,admin,admin,"system:masters"`+"\n"), 0o600); err != nil {
		return err
	}
	c.APIServer = c.Process("kube-apiserver", c.Binaries.APIServer, []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port,
		"--cert-dir=" + certificates,
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC", "--token-auth-file=" + tokens,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + signingKey, "--service-account-signing-key-file=" + signingKey,
		"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(c.Dir, "logs", "audit.log"),
		// There is no controller that makes the default ServiceAccounts.
		"--disable-admission-plugins=ServiceAccount",
	}, nil, c.serverReady(filepath.Join(certificates, "apiserver.crt")))
	for _, p := range c.Processes() {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	if c.Kubeconfig, err = c.writeKubeconfig("admin", c.token); err != nil {
		return err
	}
	c.ControllerManager = c.Process("kube-controller-manager", c.Binaries.ControllerManager, []string{
		"--kubeconfig=" + c.Kubeconfig, "--controllers=namespace-controller,garbage-collector-controller", "--leader-elect=false", "--secure-port=0",
	}, nil, nil)
	return c.ControllerManager.Start(ctx)
}

// freePorts finds free ports of the loopback interface. They stay free unless
// somebody takes them in the meantime.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}

// writeSigningKey makes the key that signs the tokens of ServiceAccounts.
func writeSigningKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// serverReady asks the API server itself. It makes its certificate as it starts.
func (c *Cluster) serverReady(certificate string) func(context.Context) error {
	return func(ctx context.Context) error {
		if c.client == nil {
			authority, err := os.ReadFile(certificate) //nolint:gosec // a file of this package's own
			if err != nil {
				return err
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(authority) {
				return errors.New("its certificate is not written yet")
			}
			c.client = &http.Client{Transport: &http.Transport{
				TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13},
				ForceAttemptHTTP2: true,
			}}
		}
		return healthy(ctx, c.client, c.server+"/readyz", c.token)
	}
}

// healthy expects the status 200.
func healthy(ctx context.Context, client *http.Client, url, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return fmt.Errorf("%s: %s %s", url, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
