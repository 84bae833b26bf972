package objectstore

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
)

// Values of X-Amz-Content-Sha256 that announce a body in the aws-chunked encoding.
const (
	streamingSigned          = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	streamingSignedTrailer   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	streamingUnsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

const (
	maxChunkLine = 4096
	maxTrailer   = 16 << 10
	emptySHA256  = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// chunkSigner verifies the chain of chunk signatures that starts with the signature of the request.
type chunkSigner struct {
	key      []byte
	amzDate  string
	scope    string
	previous string
}

// chunk verifies the next chunk of the body.
func (s *chunkSigner) chunk(data []byte, signature string) *apiError {
	digest := sha256.Sum256(data)
	return s.next(algorithmV4+"-PAYLOAD", emptySHA256+"\n"+hex.EncodeToString(digest[:]), signature)
}

// trailer verifies the signature over the trailing headers.
func (s *chunkSigner) trailer(headers map[string]string, signature string) *apiError {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	sort.Strings(names)
	var canonical strings.Builder
	for _, name := range names {
		canonical.WriteString(name + ":" + headers[name] + "\n")
	}
	digest := sha256.Sum256([]byte(canonical.String()))
	return s.next(algorithmV4+"-TRAILER", hex.EncodeToString(digest[:]), signature)
}

func (s *chunkSigner) next(kind, payload, signature string) *apiError {
	toSign := strings.Join([]string{kind, s.amzDate, s.scope, s.previous, payload}, "\n")
	want := hex.EncodeToString(hmacSHA256(s.key, toSign))
	if !hmac.Equal([]byte(want), []byte(signature)) {
		return errSignature()
	}
	s.previous = want
	return nil
}

// decodeChunked reads a body in the aws-chunked encoding. size is the length of the decoded body, which
// must be met exactly. With a signer every chunk and the trailer must be signed; without one signatures
// are ignored. It returns the body and the trailing headers, names in lower case.
func decodeChunked(body io.Reader, size int64, signer *chunkSigner, withTrailer bool) ([]byte, map[string]string, *apiError) {
	in := bufio.NewReaderSize(body, maxChunkLine)
	var data []byte
	for {
		length, signature, err := readChunkHeader(in)
		if err != nil {
			return nil, nil, err
		}
		if length > size-int64(len(data)) {
			return nil, nil, errIncomplete()
		}
		start := len(data)
		if data, err = appendExactly(data, in, length); err != nil {
			return nil, nil, err
		}
		if signer != nil {
			if err := signer.chunk(data[start:], signature); err != nil {
				return nil, nil, err
			}
		}
		if length == 0 {
			break
		}
		if line, err := readLine(in); err != nil || line != "" {
			return nil, nil, errIncomplete()
		}
	}
	if int64(len(data)) != size {
		return nil, nil, errIncomplete()
	}
	trailer, err := readTrailer(in, signer, withTrailer)
	return data, trailer, err
}

// readChunkHeader reads "<hex length>[;chunk-signature=<hex>]".
func readChunkHeader(in *bufio.Reader) (length int64, signature string, _ *apiError) {
	line, err := readLine(in)
	if err != nil {
		return 0, "", errIncomplete()
	}
	size, extensions, _ := strings.Cut(line, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 62)
	if err != nil {
		return 0, "", errIncomplete()
	}
	for extension := range strings.SplitSeq(extensions, ";") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(extension), "chunk-signature="); ok {
			signature = value
		}
	}
	return int64(n), signature, nil
}

// readTrailer reads what follows the last chunk. The separators between trailer and trailer signature
// differ among clients, so empty lines are skipped.
func readTrailer(in *bufio.Reader, signer *chunkSigner, expected bool) (map[string]string, *apiError) {
	rest, err := io.ReadAll(io.LimitReader(in, maxTrailer+1))
	if err != nil {
		return nil, errIncomplete()
	}
	if len(rest) > maxTrailer {
		return nil, malformedTrailer()
	}
	headers := make(map[string]string)
	for line := range strings.Lines(string(rest)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found {
			return nil, malformedTrailer()
		}
		headers[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	signature := headers["x-amz-trailer-signature"]
	delete(headers, "x-amz-trailer-signature")
	if !expected {
		if len(headers) > 0 {
			return nil, malformedTrailer()
		}
		return nil, nil
	}
	if signer != nil {
		if err := signer.trailer(headers, signature); err != nil {
			return nil, err
		}
	}
	return headers, nil
}

func malformedTrailer() *apiError {
	return failure(http.StatusBadRequest, "MalformedTrailerError", "")
}

// appendExactly appends the next n bytes. It grows with what really arrives, so that a large length
// in a chunk header alone costs no memory.
func appendExactly(data []byte, in io.Reader, n int64) ([]byte, *apiError) {
	const step = 1 << 20
	for n > 0 {
		take := min(n, step)
		start := len(data)
		data = append(data, make([]byte, take)...)
		if _, err := io.ReadFull(in, data[start:]); err != nil {
			return nil, errIncomplete()
		}
		n -= take
	}
	return data, nil
}

// readLine reads a line of bounded length and drops its line end.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}
