package stackit

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// endpointTagLimit bounds the tag value of an endpoint.
const endpointTagLimit = 63

// endpoint is an S3 endpoint in parts.
type endpoint struct {
	scheme string
	host   string // without port, lower case
	port   string // never empty
}

var hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// parseEndpoint reads scheme://host[:port]. ErrInvalidArgument says what is
// allowed; it does not repeat user information.
func parseEndpoint(s string) (endpoint, error) {
	u, err := url.Parse(s)
	if err != nil || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, refuse(provider.ErrInvalidArgument, "the S3 endpoint is not of the form http(s)://host[:port]")
	}
	return endpointOf(u)
}

// endpointOf returns the endpoint that a URL points at.
func endpointOf(u *url.URL) (endpoint, error) {
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return endpoint{}, refuse(provider.ErrInvalidArgument, "the S3 endpoint is not of the form http(s)://host[:port]")
	}
	e := endpoint{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: u.Port()}
	if e.port == "" {
		e.port = defaultPort(e.scheme)
	}
	if n, err := strconv.Atoi(e.port); err != nil || n < 1 || n > 65535 {
		return endpoint{}, refuse(provider.ErrInvalidArgument, "the S3 endpoint's port %q is not a number from 1 to 65535", e.port)
	}
	return e, nil
}

func defaultPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// String returns the endpoint without a default port.
func (e endpoint) String() string {
	host := e.host
	if e.port != defaultPort(e.scheme) {
		host = net.JoinHostPort(host, e.port)
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return e.scheme + "://" + host
}

// tag returns the endpoint as a tag value,
// "https.443.object.storage.eu01.onstackit.cloud".
func (e endpoint) tag() (string, error) {
	value := e.scheme + "." + e.port + "." + e.host
	if !hostPattern.MatchString(e.host) || len(value) > endpointTagLimit {
		return "", refuse(provider.ErrInvalidArgument,
			"the S3 endpoint %s cannot be recorded in a tag (host of [a-z0-9.-], %d characters in all); "+
				"set it in the back end's endpoints instead", e, endpointTagLimit)
	}
	return value, nil
}

// parseEndpointTag reads what tag wrote.
func parseEndpointTag(value string) (endpoint, error) {
	scheme, rest, _ := strings.Cut(value, ".")
	port, host, _ := strings.Cut(rest, ".")
	e, err := parseEndpoint(fmt.Sprintf("%s://%s:%s", scheme, host, port))
	if err != nil {
		return endpoint{}, refuse(provider.ErrPrecondition, "the tag %s=%q is malformed; restore it", tagEndpoint, value)
	}
	return e, nil
}
