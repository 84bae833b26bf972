module github.com/zuber-storage/zuber/test/compat

go 1.26.0

require (
	google.golang.org/grpc v1.85.0
	sigs.k8s.io/container-object-storage-interface-spec v0.1.0
)

require (
	github.com/golang/protobuf v1.5.4 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
