package v1alpha2pb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
)

// TestWire compares what protoc made with the table of the wire, which was written
// from upstream's revision of March 2026 and not from the proto of this package.
func TestWire(t *testing.T) {
	var got []string
	add := func(cells ...string) { got = append(got, "| "+strings.Join(cells, " | ")+" |") }
	var walk func(protoreflect.MessageDescriptors)
	walk = func(messages protoreflect.MessageDescriptors) {
		for i := range messages.Len() {
			m := messages.Get(i)
			if m.IsMapEntry() {
				continue
			}
			name := local(m)
			fields := m.Fields()
			if fields.Len() == 0 {
				got = append(got, "| "+name+" | (no fields) | | |")
			}
			for j := range fields.Len() {
				f := fields.Get(j)
				add(name, kindOf(f), string(f.Name()), fmt.Sprint(f.Number()))
			}
			enums := m.Enums()
			for j := range enums.Len() {
				e := enums.Get(j)
				var values []string
				for k := range e.Values().Len() {
					v := e.Values().Get(k)
					values = append(values, fmt.Sprintf("%s=%d", v.Name(), v.Number()))
				}
				got = append(got, "| "+local(e)+" | enum | "+strings.Join(values, ", ")+" | |")
			}
			walk(m.Messages())
		}
	}
	file := v1alpha2pb.File_cosi_v1alpha2_cosi_proto
	walk(file.Messages())
	raw, err := os.ReadFile(filepath.Join("testdata", "wire.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(raw)), "\n")[2:]
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not in the table %s", line)
		}
	}
	if file.Syntax() != protoreflect.Proto3 || file.Enums().Len()+file.Extensions().Len() != 0 {
		t.Errorf("%v with %d enums and %d extensions of the file", file.Syntax(), file.Enums().Len(), file.Extensions().Len())
	}
}

// local is a name without the package.
func local(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), "sigs.k8s.io.cosi.v1alpha2.")
}

// kindOf spells a type as the table does, which names a nested type without the
// message around it.
func kindOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map<" + f.MapKey().Kind().String() + "," + f.MapValue().Kind().String() + ">"
	case f.IsList():
		return "repeated " + scalar(f)
	}
	return scalar(f)
}

func scalar(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return string(f.Message().Name())
	case protoreflect.EnumKind:
		return string(f.Enum().Name())
	default:
		return f.Kind().String()
	}
}

// TestServices: the calls, none of which streams.
func TestServices(t *testing.T) {
	want := []string{
		"Identity/DriverGetInfo", "Provisioner/DriverCreateBucket", "Provisioner/DriverGetExistingBucket",
		"Provisioner/DriverDeleteBucket", "Provisioner/DriverGrantBucketAccess", "Provisioner/DriverRevokeBucketAccess",
	}
	var got []string
	services := v1alpha2pb.File_cosi_v1alpha2_cosi_proto.Services()
	for i := range services.Len() {
		s := services.Get(i)
		if s.FullName() != "sigs.k8s.io.cosi.v1alpha2."+protoreflect.FullName(s.Name()) {
			t.Errorf("service %s", s.FullName())
		}
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			got = append(got, fmt.Sprintf("%s/%s", s.Name(), m.Name()))
			if m.IsStreamingClient() || m.IsStreamingServer() || local(m.Input()) != string(m.Name())+"Request" || local(m.Output()) != string(m.Name())+"Response" {
				t.Errorf("%s takes %s and returns %s", m.FullName(), m.Input().FullName(), m.Output().FullName())
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBesideV1alpha1: both protos are in one process and can be found there.
func TestBesideV1alpha1(t *testing.T) {
	for path, want := range map[string]protoreflect.FileDescriptor{
		"cosi/v1alpha2/cosi.proto": v1alpha2pb.File_cosi_v1alpha2_cosi_proto,
		"cosi.proto":               cosiv1alpha1.File_cosi_proto,
	} {
		if got, err := protoregistry.GlobalFiles.FindFileByPath(path); err != nil || got != want {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}
