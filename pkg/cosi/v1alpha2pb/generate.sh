#!/bin/sh
# Writes the Go code of cosi.proto with the plugins that go.mod pins.
set -eu
cd "$(dirname "$0")"
command -v protoc >/dev/null || { echo "protoc is missing: install Debian's protobuf-compiler or the like" >&2; exit 1; }
protoc -I cosi/v1alpha2=. \
  --plugin=protoc-gen-go="$(go tool -n protoc-gen-go)" --go_out=. --go_opt=module=github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb \
  --plugin=protoc-gen-go-grpc="$(go tool -n protoc-gen-go-grpc)" --go-grpc_out=. --go-grpc_opt=module=github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb \
  cosi.proto
# protoc's own version is the one thing in the code that differs between machines.
for file in cosi.pb.go cosi_grpc.pb.go; do
  grep -v '^//.*[[:space:]]protoc  *v' "$file" >"$file.tmp"
  mv "$file.tmp" "$file"
done
