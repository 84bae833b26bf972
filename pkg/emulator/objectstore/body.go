package objectstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	// maxObjectBody is the largest body of one PutObject or UploadPart.
	maxObjectBody = 5 << 30
	// maxDocumentBody is the largest policy or XML document; the gateway answers 416 above it.
	maxDocumentBody = 1 << 20
	// maxDrain is how much of an unwanted body is read so that the client gets to see the answer.
	maxDrain = 64 << 20
)

// carriesObject tells whether an operation's body is object data rather than a document.
func carriesObject(operation string) bool {
	return operation == "PutObject" || operation == "UploadPart"
}

// readBody reads, decodes and verifies the body of an authenticated request.
func readBody(r *http.Request, a authenticated, operation string, p *traits) ([]byte, *apiError) {
	limit := int64(maxDocumentBody)
	tooLarge := errInvalidRange()
	if p.grid {
		tooLarge = failure(http.StatusBadRequest, "EntityTooLarge", "")
	}
	if p.grid && operation == "PutBucketPolicy" {
		tooLarge = failure(http.StatusBadRequest, "XMaxBucketPolicyLengthExceeded", "")
	}
	if carriesObject(operation) {
		limit = maxObjectBody
		tooLarge = failure(http.StatusBadRequest, "EntityTooLarge", "")
	}
	data, trailer, err := decodeBody(r, a, limit, tooLarge, p.trusting)
	if err != nil {
		return nil, err
	}
	if err := verifyContentMD5(r.Header, data); err != nil {
		return nil, err
	}
	if operation == "CompleteMultipartUpload" {
		// Its checksum headers speak of the object, not of the list of parts.
		return data, nil
	}
	if err := verifyChecksums(r.Header, trailer, data, p.checksums); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(r.Header.Get("X-Amz-Trailer"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, sent := trailer[name]; name != "" && !sent {
			return nil, malformedTrailer()
		}
	}
	return data, nil
}

// decodeBody takes the encoding of the transfer off; trusting leaves out what the signature says of the body.
func decodeBody(r *http.Request, a authenticated, limit int64, tooLarge *apiError, trusting bool) ([]byte, map[string]string, *apiError) {
	switch a.payload {
	case streamingSigned, streamingSignedTrailer, streamingUnsignedTrailer:
		size, err := strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil || size < 0 {
			return nil, nil, failure(http.StatusLengthRequired, "MissingContentLength", "")
		}
		if size > limit {
			return nil, nil, tooLarge
		}
		if trusting {
			a.chunks = nil
		} else if a.payload != streamingUnsignedTrailer && a.chunks == nil {
			// Signed chunks need a header signature to start from.
			return nil, nil, errInvalidRequest("")
		}
		return decodeChunked(r.Body, size, a.chunks, a.payload != streamingSigned)
	}
	if strings.HasPrefix(a.payload, "STREAMING-") {
		return nil, nil, failure(http.StatusNotImplemented, "NotImplemented", "")
	}
	if r.ContentLength > limit {
		return nil, nil, tooLarge
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil, errIncomplete()
	case err != nil:
		return nil, nil, failure(http.StatusBadRequest, "RequestTimeout", "")
	case int64(len(data)) > limit:
		return nil, nil, tooLarge
	}
	if a.payload != unsignedPayload && !trusting {
		sum := sha256.Sum256(data)
		if !strings.EqualFold(a.payload, hex.EncodeToString(sum[:])) {
			return nil, nil, failure(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "")
		}
	}
	return data, nil, nil
}

// drain reads the rest of a body that is not wanted. A client that waits for "100 Continue" has not sent
// it yet and is better off without.
func drain(r *http.Request) {
	if r.Header.Get("Expect") != "" {
		return
	}
	// What cannot be read is not missed: the answer does not depend on it.
	_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
}
