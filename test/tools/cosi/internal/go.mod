// Upstream's module of this name is in no module proxy. The packages that we
// take from upstream do not use it.
module sigs.k8s.io/container-object-storage-interface/internal

go 1.24.0
