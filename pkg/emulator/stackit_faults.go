package emulator

import "net/http"

// StackitFirewall is a fault that answers as the proxies before the API were
// seen to: 403 with an HTML page that says nothing of the cloud's own decision.
// Narrow it by Operation, After and Times.
func StackitFirewall() Fault {
	return Fault{
		Cloud: CloudStackit, Plane: PlaneControl, Status: http.StatusForbidden,
		Header: http.Header{"Content-Type": {"text/html"}},
		Body:   "<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body>\r\n<center><h1>403 Forbidden</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
	}
}

// StackitRateLimit is a fault that answers as the API does to an address that
// asks too often: 429 with a plain text and without Retry-After.
func StackitRateLimit() Fault {
	return Fault{
		Cloud: CloudStackit, Plane: PlaneControl, Status: http.StatusTooManyRequests,
		Header: http.Header{"Content-Type": {"text/plain"}},
		Body:   "rate limit on IP level exceeded",
	}
}
