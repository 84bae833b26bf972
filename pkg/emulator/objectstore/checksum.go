package objectstore

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"slices"
	"strings"
)

// crc64NVME is the reversed polynomial of CRC-64/NVME.
const crc64NVME = 0x9a6c9329ac4bc9b5

const checksumPrefix = "x-amz-checksum-"

// newChecksum returns the hash that a checksum header names by its last word, or nil for other words
// (x-amz-checksum-algorithm, -mode and -type are no checksums).
func newChecksum(algorithm string) hash.Hash {
	switch algorithm {
	case "crc32":
		return crc32.NewIEEE()
	case "crc32c":
		return crc32.New(crc32.MakeTable(crc32.Castagnoli))
	case "crc64nvme":
		return crc64.New(crc64.MakeTable(crc64NVME))
	case "sha1":
		return sha1.New()
	case "sha256":
		return sha256.New()
	}
	return nil
}

// verifyContentMD5 checks the Content-MD5 header, if there is one.
func verifyContentMD5(header http.Header, data []byte) *apiError {
	value := header.Get("Content-MD5")
	if value == "" {
		return nil
	}
	want, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(want) != md5.Size {
		return errInvalidDigest()
	}
	if got := md5.Sum(data); !bytes.Equal(want, got[:]) {
		return errBadDigest()
	}
	return nil
}

// verifyChecksums checks every x-amz-checksum-* value of the given algorithms, whether it came as a header
// or as a trailer.
func verifyChecksums(header http.Header, trailer map[string]string, data []byte, algorithms []string) *apiError {
	for name := range header {
		if err := verifyChecksum(strings.ToLower(name), header.Get(name), data, algorithms); err != nil {
			return err
		}
	}
	for name, value := range trailer {
		if err := verifyChecksum(name, value, data, algorithms); err != nil {
			return err
		}
	}
	return nil
}

func verifyChecksum(name, value string, data []byte, algorithms []string) *apiError {
	algorithm, ok := strings.CutPrefix(name, checksumPrefix)
	if !ok || !slices.Contains(algorithms, algorithm) {
		return nil
	}
	sum := newChecksum(algorithm)
	if sum == nil {
		return nil
	}
	want, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(want) != sum.Size() {
		return errInvalidRequest("Value for " + name + " header is invalid.")
	}
	sum.Write(data)
	if !bytes.Equal(want, sum.Sum(nil)) {
		return errBadDigest()
	}
	return nil
}

func md5Hex(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}
