package emulator

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	// stackitAudience is what a service account key's assertions are meant for.
	stackitAudience = "https://accounts.stackit.cloud"
	// stackitTokenLife is the life of an access token.
	stackitTokenLife = 10 * time.Minute

	grantJWTBearer         = "urn:ietf:params:oauth:grant-type:jwt-bearer"                 // #nosec G101 -- a name
	grantClientCredentials = "client_credentials"                                          // #nosec G101 -- a name
	assertionWorkloadJWT   = "urn:schwarz:params:oauth:client-assertion-type:workload-jwt" // #nosec G101 -- a name
)

// stackitIssuer is the identity side of the cloud: service accounts, their keys
// and the tokens they get. It is safe for concurrent use.
type stackitIssuer struct {
	now      func() time.Time
	accounts []*stackitAccount // of the own project first
	// access signs access tokens, workload those of the federated workloads.
	access, workload []byte

	mu   sync.Mutex
	keys []*stackitAccountKey
}

// stackitAccount is a service account of a project.
type stackitAccount struct {
	id, email, project string
	// first makes the account's first key once.
	first func() (string, error)
}

// stackitAccountKey is the public half of a service account key.
type stackitAccountKey struct {
	kid     string
	account *stackitAccount
	public  *rsa.PublicKey
}

func newStackitIssuer(now func() time.Time, projects ...string) *stackitIssuer {
	s := &stackitIssuer{now: now, access: make([]byte, 32), workload: make([]byte, 32)}
	_, _ = rand.Read(s.access) // never fails
	_, _ = rand.Read(s.workload)
	for _, project := range projects {
		s.accounts = append(s.accounts, &stackitAccount{
			id: newUUID(), project: project,
			email: "zuber-" + randomString("abcdefghijklmnopqrstuvwxyz0123456789", 7) + "@sa.stackit.cloud",
		})
	}
	return s
}

// ServiceAccountKey is the first key of the service account of ProjectID, as
// the portal exports it: a JSON document that holds the private key and names
// TokenURL. It is made on the first call, in about 0.1 s, and is the same ever
// after. It is empty only if the system cannot generate an RSA key.
func (c *Stackit) ServiceAccountKey() string { return c.firstKey(c.ProjectID) }

// ForeignServiceAccountKey is the same for ForeignProjectID.
func (c *Stackit) ForeignServiceAccountKey() string { return c.firstKey(c.ForeignProjectID) }

func (c *Stackit) firstKey(project string) string {
	c.issuer.mu.Lock()
	a := c.issuer.accountOf(project)
	if a.first == nil {
		a.first = sync.OnceValues(func() (string, error) { return c.NewServiceAccountKey(project) })
	}
	first := a.first
	c.issuer.mu.Unlock()
	key, err := first()
	if err != nil {
		return ""
	}
	return key
}

// NewServiceAccountKey makes one more key of a project's service account; the
// older ones go on working. An unknown project is an error.
func (c *Stackit) NewServiceAccountKey(projectID string) (string, error) {
	a := c.issuer.accountOf(projectID)
	if a == nil {
		return "", fmt.Errorf("service account key: no project %q", projectID)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", fmt.Errorf("service account key: %w", err)
	}
	kid := newUUID()
	text, err := exportAccountKey(a, kid, private, c.TokenURL, c.now())
	if err != nil {
		return "", fmt.Errorf("service account key: %w", err)
	}
	c.issuer.mu.Lock()
	defer c.issuer.mu.Unlock()
	c.issuer.keys = append(c.issuer.keys, &stackitAccountKey{kid: kid, account: a, public: &private.PublicKey})
	return text, nil
}

// RevokeServiceAccountKey takes a key as one of the methods above returned it
// and gives no more tokens for it; tokens it got live on. It reports whether
// there was something to revoke.
func (c *Stackit) RevokeServiceAccountKey(key string) bool {
	var in serviceAccountKeyBody
	if json.Unmarshal([]byte(key), &in) != nil {
		return false
	}
	c.issuer.mu.Lock()
	defer c.issuer.mu.Unlock()
	before := len(c.issuer.keys)
	c.issuer.keys = slices.DeleteFunc(c.issuer.keys, func(k *stackitAccountKey) bool { return k.kid == in.Credentials.KeyID })
	return len(c.issuer.keys) < before
}

// NewFederatedToken makes one more token of the workload that FederationEmail
// trusts, valid for a while by Options.Now.
func (c *Stackit) NewFederatedToken(life time.Duration) string { return c.issuer.federatedToken(life) }

// AccessToken makes a bearer token of a project's service account without
// asking the token endpoint, for clients that know neither flow. It lives ten
// minutes, and is empty for an unknown project.
func (c *Stackit) AccessToken(projectID string) string {
	a := c.issuer.accountOf(projectID)
	if a == nil {
		return ""
	}
	return c.issuer.accessToken(a)
}

// serviceAccountKeyBody is a key as the portal exports it.
type serviceAccountKeyBody struct {
	Active       bool                      `json:"active"`
	CreatedAt    string                    `json:"createdAt"`
	Credentials  serviceAccountCredentials `json:"credentials"`
	ID           string                    `json:"id"`
	KeyAlgorithm string                    `json:"keyAlgorithm"`
	KeyOrigin    string                    `json:"keyOrigin"`
	KeyType      string                    `json:"keyType"`
	ProjectID    string                    `json:"projectId"`
	PublicKey    string                    `json:"publicKey"`
}

type serviceAccountCredentials struct {
	Audience      string `json:"aud"`
	Issuer        string `json:"iss"`
	KeyID         string `json:"kid"`
	PrivateKey    string `json:"privateKey"` // #nosec G117 -- handing it out is what the export is for
	Subject       string `json:"sub"`
	TokenEndpoint string `json:"tokenEndpoint"`
}

func exportAccountKey(a *stackitAccount, kid string, key *rsa.PrivateKey, tokenURL string, now time.Time) (string, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(serviceAccountKeyBody{
		Active: true, CreatedAt: stackitTime(now), ID: kid, ProjectID: a.project,
		KeyAlgorithm: "RSA_2048", KeyOrigin: "GENERATED", KeyType: "USER_MANAGED",
		PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		Credentials: serviceAccountCredentials{
			Audience: stackitAudience, Issuer: a.email, KeyID: kid, Subject: a.id, TokenEndpoint: tokenURL,
			PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		},
	})
	return string(text), err
}

// accountOf returns the service account of a project, or nil.
func (s *stackitIssuer) accountOf(project string) *stackitAccount {
	for _, a := range s.accounts {
		if a.project == project {
			return a
		}
	}
	return nil
}

func (s *stackitIssuer) accessToken(a *stackitAccount) string {
	now := s.now()
	return signHS256(s.access, jwtClaims{
		Issuer: "stackit/serviceaccount", Subject: a.id, Audience: jwtAudience{"stackit"},
		IssuedAt: float64(now.Unix()), Expires: float64(now.Add(stackitTokenLife).Unix()),
		ID: newUUID(), Email: a.email, Project: a.project,
	})
}

func (s *stackitIssuer) federatedToken(life time.Duration) string {
	now := s.now()
	return signHS256(s.workload, jwtClaims{
		Issuer: "https://kubernetes.default.svc.cluster.local", Subject: "system:serviceaccount:zuber:zuber",
		Audience: jwtAudience{"sts.accounts.stackit.cloud"},
		IssuedAt: float64(now.Unix()), Expires: float64(now.Add(life).UnixNano()) / float64(time.Second), ID: newUUID(),
	})
}

// project returns the project that an access token opens.
func (s *stackitIssuer) project(token string) (string, error) {
	t, err := parseJWT(token)
	if err != nil {
		return "", err
	}
	if err := t.verifyHS256(s.access); err != nil {
		return "", err
	}
	if !t.claims.live(s.now()) {
		return "", errToken
	}
	return t.claims.Project, nil
}

// assert checks a service account's assertion and returns who made it.
func (s *stackitIssuer) assert(assertion string) (*stackitAccount, error) {
	t, err := parseJWT(assertion)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.keys, func(k *stackitAccountKey) bool { return k.kid == t.header.KeyID })
	var key *stackitAccountKey
	if i >= 0 {
		key = s.keys[i]
	}
	s.mu.Unlock()
	if key == nil {
		return nil, errToken
	}
	if err := t.verifyRS512(key.public); err != nil {
		return nil, err
	}
	if t.claims.Issuer != key.account.email || t.claims.Subject != key.account.id ||
		!slices.Contains(t.claims.Audience, stackitAudience) || !t.claims.live(s.now()) {
		return nil, errToken
	}
	return key.account, nil
}

// federate checks a workload's token and returns the account it signs in as.
func (s *stackitIssuer) federate(form url.Values) (*stackitAccount, error) {
	a := s.accounts[0]
	t, err := parseJWT(form.Get("client_assertion"))
	if err != nil {
		return nil, err
	}
	if err := t.verifyHS256(s.workload); err != nil {
		return nil, err
	}
	if !t.claims.live(s.now()) || form.Get("client_id") != a.email ||
		form.Get("client_assertion_type") != assertionWorkloadJWT {
		return nil, errToken
	}
	return a, nil
}

// tokenBody is the token endpoint's answer. It has no refresh token.
type tokenBody struct {
	AccessToken string `json:"access_token"` // #nosec G117 -- handing it out is what the endpoint is for
	ExpiresIn   int    `json:"expires_in"`
	Scope       string `json:"scope"`
	TokenType   string `json:"token_type"`
}

type tokenError struct {
	Error string `json:"error"`
}

// serveToken answers the token endpoint.
func (c *Stackit) serveToken(r *http.Request) stackitReply {
	if r.Method != http.MethodPost {
		return stackitReply{http.StatusMethodNotAllowed, tokenError{"invalid_request"}}
	}
	form, err := readTokenForm(r)
	if err != nil {
		return stackitReply{http.StatusBadRequest, tokenError{"invalid_request"}}
	}
	var account *stackitAccount
	switch form.Get("grant_type") {
	case grantJWTBearer:
		account, err = c.issuer.assert(form.Get("assertion"))
	case grantClientCredentials:
		account, err = c.issuer.federate(form)
	case "":
		return stackitReply{http.StatusBadRequest, tokenError{"invalid_request"}}
	default:
		return stackitReply{http.StatusBadRequest, tokenError{"unsupported_grant_type"}}
	}
	if err != nil {
		return stackitReply{http.StatusBadRequest, tokenError{"invalid_grant"}}
	}
	return stackitReply{http.StatusOK, tokenBody{
		AccessToken: c.issuer.accessToken(account), ExpiresIn: int(stackitTokenLife / time.Second), TokenType: "Bearer",
	}}
}

// readTokenForm takes the parameters from the body alone; in a query they
// would end in the logs of proxies.
func readTokenForm(r *http.Request) (url.Values, error) {
	if mediaType(r) != "application/x-www-form-urlencoded" {
		return nil, errors.New("the body is not a form")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxInput {
		return nil, errors.New("the body is too large")
	}
	return url.ParseQuery(string(body))
}
