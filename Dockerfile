# Images are named by digest; the tag says what it was.
ARG GO_IMAGE=golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d
# Static has the certificates of the authorities, and a user nonroot of 65532.
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab

# It compiles on the machine's own platform for any other.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
COPY go.mod go.sum ./
RUN go mod download
COPY test/tools/release test/tools/release
RUN go build -C test/tools/release -o ../../../bin/release .
COPY LICENSE ./
COPY cmd cmd
COPY pkg pkg
ARG VERSION=dev COMMIT=unknown
ARG TARGETOS TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o out/zuber ./cmd/zuber
RUN bin/release notices . >out/THIRD_PARTY_NOTICES && bin/release sbom . out/zuber >out/sbom.cdx.json

FROM ${BASE_IMAGE}
ARG VERSION=dev COMMIT=unknown
LABEL org.opencontainers.image.title="zuber" \
      org.opencontainers.image.description="COSI driver for STACKIT Object Storage and cloudscale.ch" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/zuber-storage/zuber" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=build /src/LICENSE /src/out/THIRD_PARTY_NOTICES /src/out/sbom.cdx.json /usr/share/doc/zuber/
COPY --from=build /src/out/zuber /zuber
USER 65532:65532
ENTRYPOINT ["/zuber"]
CMD ["serve"]
