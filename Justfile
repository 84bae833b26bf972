import "Justfile.vars.just"

_default:
    @just --list

# Build the binary into bin/
build:
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version={{version}}" -o bin/{{name}} ./cmd/zuber

# Write the licences and notices of what is linked into bin/; fails where a licence does not allow it
notices:
    mkdir -p bin && go run -C test/tools/release . notices ../../.. > bin/THIRD_PARTY_NOTICES

# Run every test with the race detector
test:
    go test -race ./...

# Run the tests without the slow part
test-short:
    go test -short -race ./...

# Stop the driver at every call, also where the cloud is as at the call before, and tell it long random stories
crash steps="100000":
    go test -race -timeout 0 ./test/crash -every-point -steps {{steps}}

# Fuzz each target for a while, for example: just fuzz 10m
fuzz time="30s":
    grep -rnoE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' pkg cmd | while IFS=: read -r file _ name; do go test -run '^$' -fuzz "^${name#func }\$" -fuzztime {{time}} "./${file%/*}" || exit 1; done

# Run the linters
lint:
    {{lint}} run ./...

# Format the sources
fmt:
    {{lint}} fmt ./...

# Rewrite everything that is generated: flag, parameter and metric tables
generate:
    go generate ./...

# Rewrite the tables of docs/clients.md from runs of the S3 clients, which must be installed
clients:
    go test ./test/clients -update

# Fail when something generated is not current or the tree is not clean
verify: generate
    git diff --exit-code && test -z "$(git status --porcelain)"

# Show the whole life of a bucket against the built-in emulator
selftest:
    go run ./cmd/zuber selftest --emulate

# Serve the driver against the built-in emulator
serve-emulated:
    go run ./cmd/zuber serve --emulate --endpoint unix:///tmp/{{name}}/cosi.sock --metrics-address 127.0.0.1:8080

# Leave a cluster running with the driver against emulated clouds, and say what to try
playground:
    go run ./test/e2e/playground

# Build the container image
image:
    docker build --build-arg VERSION={{version}} --build-arg COMMIT=$(git rev-parse HEAD) -t {{image}} .

# Remove what the recipes made
clean:
    rm -rf bin dist
