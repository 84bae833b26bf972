package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const (
	aSecret = "Zq8Rk2Vw5Xy1Tn7Lb4Hd9Jf3Gs6Pm0Cq/+aB1xYz"
	aToken  = "Kp3Wm7Qz1Xc9Vb5Nn2Aa8Ss4Dd6Ff0Gg"
)

// shapes are all exported types that hold a credential or a way to one, filled, and
// the canary in a field that is none.
func shapes(t *testing.T) map[string]any {
	t.Helper()
	secret := provider.NewSecret(aSecret)
	credentials := provider.Credentials{AccessKeyID: canary, SecretAccessKey: secret}
	source := func() (provider.Secret, error) { return secret, nil }
	client, err := s3.New(s3.Config{Endpoint: "http://" + canary, AccessKeyID: canary, SecretAccessKey: secret.Reveal})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"provider.Secret":        secret,
		"provider.Credentials":   credentials,
		"provider.Access":        provider.Access{IdentityID: canary, Credentials: credentials},
		"driver.Grant":           driver.Grant{AccountID: canary, Credentials: credentials},
		"cosi.Granted":           cosi.Granted{AccountID: canary, AccessKeyID: canary, SecretAccessKey: secret},
		"cloudscale.Config":      cloudscale.Config{DriverName: canary, Token: source},
		"stackit.Config":         stackit.Config{DriverName: canary, Credentials: stackit.Credentials{Key: source}, AdminKey: func() (provider.Credentials, error) { return credentials, nil }},
		"stackit.Credentials":    stackit.Credentials{Key: source, FederationEmail: canary},
		"s3.Config":              s3.Config{Endpoint: canary, AccessKeyID: canary, SecretAccessKey: secret.Reveal},
		"s3.Client":              client,
		"a map of credentials":   map[string]provider.Credentials{canary: credentials},
		"a list of credentials":  []*provider.Credentials{&credentials},
		"an error of a struct":   fmt.Errorf("%w: %+v", provider.ErrUnavailable, credentials),
		"a struct around a pair": struct{ C *provider.Credentials }{&credentials},
	}
}

// TestShapesShowNothing writes each of them under every verb and with every encoder,
// as a value, a pointer, an element and a field.
func TestShapesShowNothing(t *testing.T) {
	s, out := newSecrets(), newChannels()
	s.add("secret", aSecret)
	encoders := map[string]func(any) ([]byte, error){
		"JSON": json.Marshal, "YAML": yaml.Marshal,
		"YAML 3": func(v any) (b []byte, err error) {
			defer func() {
				if p := recover(); p != nil { // its answer to a function
					err = fmt.Errorf("%v", p)
				}
			}()
			return yaml3.Marshal(v)
		},
		"gob": func(v any) ([]byte, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.Bytes(), err
		},
	}
	for name, shape := range shapes(t) {
		for _, v := range []any{shape, &shape, []any{shape}, struct{ V any }{shape}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "% x", "%X", "%#x", "%d", "%p", "%T", "%w", "%U", "%c", "%t", "%e", "%08b", "%o"} {
				out.add("verbs", canary, fmt.Sprintf(verb, v))
			}
			out.add("verbs", fmt.Sprint(v), fmt.Sprintln(v))
			for encoder, encode := range encoders {
				text, err := encode(v)
				// What cannot be encoded shows nothing either, its error included.
				out.add(encoder, canary, string(text), fmt.Sprint(err))
			}
		}
		if text := fmt.Sprintf("%+v", shape); name != "provider.Secret" && !strings.Contains(text, canary) && name != "s3.Client" && !strings.Contains(text, "0x") && !strings.Contains(name, "error") {
			t.Errorf("%s is not shown at all: %s", name, text)
		}
	}
	out.wantClean(t, s, aSecret)
}

// TestShapesAreComplete: an exported type that holds a credential by its type or its
// name is in the list. The emulator's open nothing but itself, and what is generated
// is the wire.
func TestShapesAreComplete(t *testing.T) {
	known := shapes(t)
	suspicious := regexp.MustCompile(`(?i)secret|token$|password|credentials$|privatekey`)
	found := 0
	err := filepath.WalkDir("../../pkg", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{"emulator", "v1alpha2pb", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			types, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range types.Specs {
				def, ok := spec.(*ast.TypeSpec)
				if !ok || !def.Name.IsExported() {
					continue
				}
				fields, ok := def.Type.(*ast.StructType)
				if !ok {
					continue
				}
				name := file.Name.Name + "." + def.Name.Name
				for _, field := range fields.Fields.List {
					for _, id := range field.Names {
						if id.IsExported() && suspicious.MatchString(id.Name) && !isChoice(field.Type) {
							found++
							if _, ok := known[name]; !ok {
								t.Errorf("%s has the field %s: put it into shapes", name, id.Name)
							}
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 7 {
		t.Errorf("%d fields found: looked in the wrong place", found)
	}
}

// isChoice reports whether a field is a setting or a report about credentials and
// holds none.
func isChoice(e ast.Expr) bool {
	if pointer, ok := e.(*ast.StarExpr); ok {
		e = pointer.X
	}
	id, ok := e.(*ast.Ident)
	return ok && slices.Contains([]string{"SharedCredentials", "CredentialMode", "SecretReport", "bool"}, id.Name)
}

// panicky is a provider that panics with a secret.
type panicky struct {
	provider.Provider
	with any
}

func (p panicky) CreateBucket(context.Context, provider.BucketSpec) (provider.Bucket, error) {
	panic(p.with)
}

// TestPanicsShowNothing: neither the caller nor the log learns what a panic's value
// holds.
func TestPanicsShowNothing(t *testing.T) {
	s, out := newSecrets(), newChannels()
	s.add("secret", aSecret)
	secret := provider.NewSecret(aSecret)
	for _, with := range []any{aSecret, errors.New(aSecret), []byte(aSecret), struct{ Key string }{aSecret}, &secret, fmt.Errorf("%w", errors.New(aSecret)), map[string]string{"k": aSecret}} {
		for _, format := range []string{formatText, formatJSON} {
			d, err := driver.New(driver.Config{Name: defaultDriverName, Backends: []driver.Backend{{Name: "b", Provider: panicky{with: with}}}})
			if err != nil {
				t.Fatal(err)
			}
			logs := newWatched()
			c, err := cosi.NewClient(cosi.Options{Driver: d, Logger: newLogger(logs, logSettings{10, format})})
			if err != nil {
				t.Fatal(err)
			}
			for _, version := range []cosi.APIVersion{cosi.V1alpha1, cosi.V1alpha2} {
				_, err = c.Speaking(version).CreateBucket(t.Context(), canary, map[string]string{"region": "r"})
				var failed *cosi.RPCError
				if !errors.As(err, &failed) || failed.Code != "Internal" {
					t.Errorf("%T: %v", with, err)
				}
				out.add("the answer to a panic", canary, fmt.Sprint(err))
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			out.add("the log of a panic", logs.String())
		}
	}
	out.wantClean(t, s, aSecret)
}

// TestFaultsOfConfigurationShowNothing puts credentials where they do not belong.
func TestFaultsOfConfigurationShowNothing(t *testing.T) {
	s, out := newSecrets(), newChannels()
	key := stackitKey(t)
	s.add("token", aToken)
	s.addServiceAccountKey(t, key)
	look, dir, n := s.scanner(), t.TempDir(), 0
	file := func(text string) environment {
		n++
		path := filepath.Join(dir, fmt.Sprint(n, ".yaml"))
		writeFile(t, path, text)
		return environment{envName(flagConfig): path}
	}
	entry := "backends: [{name: a, provider: cloudscale, "
	for what, env := range map[string]environment{
		"a token as the file's name":           {envTokenFile: aToken},
		"a token as a path":                    {envTokenFile: "/run/secrets/" + aToken},
		"two tokens":                           {envToken: aToken + "\n" + aToken},
		"a token in quotes":                    {envToken: `"` + aToken + `"`},
		"a token in the URL's user":            {envToken: "x", envAPIURL: "https://user:" + aToken + "@host"},
		"a token in the URL's query":           {envToken: "x", envAPIURL: "https://host/?token=" + aToken},
		"a key as the path":                    {envStackitKeyPath: key},
		"a part of a key as the path":          {envStackitKeyPath: keyPart(t, key)},
		"half a key":                           {envStackitKey: key[:len(key)/2]},
		"a key without quotes":                 {envStackitKey: strings.ReplaceAll(key, `"`, "")},
		"a key of another kind":                {envStackitKey: strings.Replace(key, "PRIVATE KEY", "PUBLIC KEY", 1)},
		"a federated token as the path":        {envStackitEmail: aServiceMail, envStackitFederatedToken: "eyJ" + aToken + ".eyJ" + aToken + "." + aToken},
		"an unknown variable":                  {envPrefix + "TOKEN": aToken, envToken: "two words"},
		"token in the file":                    file(entry + "token: " + aToken + "}]"),
		"token as tokenEnv":                    file(entry + "tokenEnv: 0" + aToken + "}]"),
		"token as a name of tokenFile":         file(entry + "tokenFile: " + aToken + "}]"),
		"token as an alias":                    file(entry + "tokenFile: *" + aToken + "}]"),
		"token as an anchor":                   file(entry + "tokenFile: &" + aToken + " }]"),
		"token as a tag":                       file(entry + "tokenFile: !" + aToken + " x}]"),
		"token as a number":                    file(entry + "tokenFile: !!int " + aToken + "}]"),
		"token as a binary":                    file(entry + "tokenFile: !!binary '" + aToken + "!'}]"),
		"token as a key":                       file(entry + aToken + ": x}]"),
		"token twice as a key":                 file(entry + aToken + ": x, " + aToken + ": y}]"),
		"token as the document":                file(aToken),
		"token as a list":                      file("backends: " + aToken),
		"token in an endpoint":                 file(entry + "tokenFile: x, endpoints: {rma: 'https://u:" + aToken + "@h'}}]"),
		"token in the API URL":                 file(entry + "tokenFile: x, apiURL: 'https://u:" + aToken + "@h'}]"),
		"token as a duration":                  file("backends: [{name: a, provider: stackit, keyFile: x, adminKeyTTL: " + aToken + "}]"),
		"key as the key file":                  file("backends: [{name: a, provider: stackit, keyFile: '" + strings.ReplaceAll(key, "'", "") + "'}]"),
		"key in the file":                      file("backends: [{name: a, provider: stackit, serviceAccountKey: " + key + "}]"),
		"token with a tab":                     file("backends:\n\t- " + aToken),
		"token after an unfinished quotation":  file(entry + "tokenFile: \"" + aToken + "}]"),
		"a token as the file of configuration": {envName(flagConfig): aToken},
	} {
		for _, cmd := range []string{"serve", "selftest"} {
			got := command(t, env, cmd, "-v", "10")
			if got.code != exitUsage {
				t.Errorf("%s: exit code %d", what, got.code)
			}
			if found := look.find(got.stdout + got.stderr); found != "" {
				t.Errorf("%s: shows %s", what, found)
			}
			out.add("faults of the configuration", canary, got.stdout, got.stderr)
		}
	}
	out.wantClean(t, s, aToken)
}
