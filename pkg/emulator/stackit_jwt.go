package emulator

import (
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errToken is all a client learns of a token that is not accepted.
var errToken = errors.New("token not accepted")

// jwtClaims are the registered claims that the emulator reads and writes, with
// those of its own access tokens.
type jwtClaims struct {
	Issuer   string      `json:"iss"`
	Subject  string      `json:"sub"`
	Audience jwtAudience `json:"aud"`
	// Expires and IssuedAt are seconds since 1970; some issuers send fractions.
	Expires  float64 `json:"exp,omitempty"`
	IssuedAt float64 `json:"iat,omitempty"`
	ID       string  `json:"jti,omitempty"`
	Email    string  `json:"email,omitempty"`
	Project  string  `json:"stackit/project/project.id,omitempty"`
}

// live reports whether the token has an expiry that lies ahead.
func (c jwtClaims) live(now time.Time) bool {
	return float64(now.UnixNano())/float64(time.Second) < c.Expires
}

// jwtAudience is one name or a list of them.
type jwtAudience []string

func (a *jwtAudience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = jwtAudience{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("audience: %w", err)
	}
	*a = list
	return nil
}

// jwtHeader is the protected header.
type jwtHeader struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ,omitempty"`
	KeyID     string `json:"kid,omitempty"`
}

// jwt is a token taken apart; nothing of it is trusted before a verify method
// has said so.
type jwt struct {
	header    jwtHeader
	claims    jwtClaims
	signed    string
	signature []byte
}

func parseJWT(token string) (jwt, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return jwt{}, errToken
	}
	t := jwt{signed: parts[0] + "." + parts[1]}
	for i, into := range []any{&t.header, &t.claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return jwt{}, errToken
		}
		if err := json.Unmarshal(text, into); err != nil {
			return jwt{}, errToken
		}
	}
	var err error
	if t.signature, err = base64.RawURLEncoding.DecodeString(parts[2]); err != nil {
		return jwt{}, errToken
	}
	return t, nil
}

// verifyRS512 accepts no other algorithm, whatever the header says.
func (t jwt) verifyRS512(key *rsa.PublicKey) error {
	sum := sha512.Sum512([]byte(t.signed))
	if t.header.Algorithm != "RS512" || rsa.VerifyPKCS1v15(key, crypto.SHA512, sum[:], t.signature) != nil {
		return errToken
	}
	return nil
}

// verifyHS256 accepts no other algorithm, whatever the header says.
func (t jwt) verifyHS256(secret []byte) error {
	if t.header.Algorithm != "HS256" || !hmac.Equal(hs256(secret, t.signed), t.signature) {
		return errToken
	}
	return nil
}

// signHS256 makes a token.
func signHS256(secret []byte, claims jwtClaims) string {
	signed := jwtPart(jwtHeader{Algorithm: "HS256", Type: "JWT"}) + "." + jwtPart(claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(hs256(secret, signed))
}

func hs256(secret []byte, signed string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return mac.Sum(nil)
}

func jwtPart(v any) string {
	// Headers and claims are strings and finite numbers, which always marshal.
	text, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text)
}
