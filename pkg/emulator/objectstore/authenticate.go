package objectstore

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// caller is who sent a request.
type caller struct {
	Identity
	anonymous bool
}

// authenticated is the outcome of a signature check: the caller and how the body is to be read.
type authenticated struct {
	caller  caller
	payload string       // value of X-Amz-Content-Sha256
	chunks  *chunkSigner // nil unless the chunks of the body are signed
}

// authenticate finds out who sends r, and verifies the signature. It does not touch the body.
func (s *Store) authenticate(r *http.Request, region string, t target, query url.Values) (authenticated, *apiError) {
	payload := r.Header.Get("X-Amz-Content-Sha256")
	if payload == "" {
		payload = unsignedPayload
	}
	header := r.Header.Get("Authorization")
	switch {
	case strings.HasPrefix(header, "AWS "):
		c, err := parseAuthorizationV2(header)
		return s.finishV2(r, region, t, query, c, err)
	case header != "":
		c, err := parseAuthorization(header)
		if err != nil {
			return authenticated{}, err
		}
		c.amzDate = signatureDate(r)
		return s.finishV4(r, region, query, c, payload)
	case query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature"):
		c, err := parsePresigned(query)
		if err != nil {
			return authenticated{}, err
		}
		return s.finishV4(r, region, query, c, payload)
	case query.Has("AWSAccessKeyId"):
		c, err := parsePresignedV2(query)
		return s.finishV2(r, region, t, query, c, err)
	}
	return authenticated{caller: caller{anonymous: true}, payload: payload}, nil
}

// signatureDate returns the date of a header signature in the layout that is signed. Some clients
// send only a Date header.
func signatureDate(r *http.Request) string {
	if d := r.Header.Get("X-Amz-Date"); d != "" {
		return d
	}
	if d, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		return d.UTC().Format(amzDateLayout)
	}
	return r.Header.Get("Date")
}

func (s *Store) finishV4(r *http.Request, region string, query url.Values, c claim, payload string) (authenticated, *apiError) {
	key, err := s.lookup(region, c.accessKeyID)
	if err != nil {
		return authenticated{}, err
	}
	if err := c.checkTime(s.now()); err != nil {
		return authenticated{}, err
	}
	if err := c.verify(r, query, payload, key.Secret); err != nil {
		return authenticated{}, err
	}
	a := authenticated{caller: caller{Identity: key.Identity}, payload: payload}
	if payload == streamingSigned || payload == streamingSignedTrailer {
		a.chunks = &chunkSigner{key: c.signingKey(key.Secret), amzDate: c.amzDate, scope: c.scope, previous: c.signature}
	}
	return a, nil
}

func (s *Store) finishV2(r *http.Request, region string, t target, query url.Values, c claimV2, err *apiError) (authenticated, *apiError) {
	if err != nil {
		return authenticated{}, err
	}
	key, err := s.lookup(region, c.accessKeyID)
	if err != nil {
		return authenticated{}, err
	}
	if err := c.checkTime(r, s.now()); err != nil {
		return authenticated{}, err
	}
	if err := c.verify(r, t, query, key.Secret); err != nil {
		return authenticated{}, err
	}
	return authenticated{caller: caller{Identity: key.Identity}, payload: unsignedPayload}, nil
}

func (s *Store) lookup(region, accessKeyID string) (Key, *apiError) {
	if s.keys != nil {
		if key, ok := s.keys.Lookup(region, accessKeyID); ok {
			return key, nil
		}
	}
	return Key{}, failure(http.StatusForbidden, "InvalidAccessKeyId", "")
}

// isoTime is the layout of times in XML answers.
func isoTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
