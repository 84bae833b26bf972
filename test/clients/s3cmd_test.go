package clients

import "fmt"

func s3cmd() client {
	const at = "s3://" + bucketName + "/"
	stored := func(key string, size int, args ...string) func(*session) error {
		return func(s *session) error {
			return then(func() error { return s.run(args...) }, func() error { return s.stored(key, size) })
		}
	}
	got := func(name string, size int, args ...string) func(*session) error {
		return func(s *session) error {
			s.write(name, nil)
			return then(func() error { return s.run(args...) }, func() error { return s.got(name, size) })
		}
	}
	return client{
		name:    "s3cmd",
		program: "s3cmd",
		version: []string{"--version"},
		prepare: func(s *session) error {
			s.write("s3cfg", fmt.Appendf(nil, "[default]\nhost_base = %[1]s\nhost_bucket = %[1]s\nbucket_location = %[2]s\nca_certs_file = ca.pem\naccess_key = %[3]s\nsecret_key = %[4]s\nmax_retries = 1\n",
				s.key.host, s.key.region, s.key.accessKey, s.key.secretKey))
			s.flags = []string{"-c", "s3cfg", "--no-progress"}
			return nil
		},
		operations: []operation{
			{name: "`put`", needs: write, run: stored("mine/small.txt", smallSize, "put", "src/small.txt", at+"mine/small.txt")},
			{name: "`put`, in parts", needs: write, alone: true, run: func(s *session) error {
				return then(func() error {
					return stored("mine/big.bin", bigSize, "put", "--multipart-chunk-size-mb=5", "src/big.bin", at+"mine/big.bin")(s)
				}, func() error { return s.called("CreateMultipartUpload") })
			}},
			{name: "`put --recursive`", needs: write, alone: true, run: func(s *session) error {
				return then(func() error { return s.run("put", "--recursive", "src/tree/", at+"put/") }, func() error { return s.storedTree("put/") })
			}},
			{name: "`ls --recursive`", needs: list, run: func(s *session) error { return s.prints([]string{hidden}, "ls", "--recursive", at) }},
			{name: "`get`", needs: read, run: got("got/small.txt", smallSize, "get", "--force", at+"theirs/small.txt", "got/small.txt")},
			{name: "`get`, 6 MiB", needs: read, alone: true, run: got("got/big.bin", bigSize, "get", "--force", at+"theirs/big.bin", "got/big.bin")},
			{name: "`info` of an object", needs: read, caveat: true, alone: true, run: func(s *session) error { return s.prints([]string{"File size: 39"}, "info", at+"theirs/small.txt") }},
			{name: "`info` of the bucket", needs: list, caveat: true, alone: true, run: func(s *session) error { return s.prints([]string{"Location:"}, "info", "s3://"+bucketName) }},
			{name: "`sync` up", needs: list | write, run: func(s *session) error {
				return then(func() error { return s.run("sync", "src/tree/", at+"synced/") }, func() error { return s.storedTree("synced/") })
			}},
			{name: "`sync` down", needs: list | read, run: func(s *session) error {
				s.write("got/tree/small.txt", nil)
				return then(func() error { return s.run("sync", at+"tree/", "got/tree/") }, func() error { return s.gotTree("got/tree") })
			}},
			{name: "`cp`", needs: read | write, caveat: true, run: stored("mine/copy.bin", bigSize, "cp", at+"theirs/big.bin", at+"mine/copy.bin"),
				otherwise: &settings{"`--acl-private`", func(s *session) { s.flags = append(s.flags, "--acl-private") }}},
			{name: "`del`", needs: remove, run: func(s *session) error {
				return then(func() error { return s.run("del", at+"delete/one/1") }, func() error { return s.gone("delete/one/1") })
			}},
			{name: "`del --recursive`", needs: list | remove, alone: true, run: func(s *session) error {
				return then(func() error { return s.run("del", "--recursive", "--force", at+"delete/tree/") }, func() error { return s.gone(doomed("delete/tree/")...) })
			}},
			{name: "a bucket of its own: `mb`, `ls`, `rb`", needs: list | read | write | remove, alone: true, caveat: true, run: func(s *session) error {
				return then(func() error { return s.run("mb", "s3://"+ownBucket) },
					func() error { return s.prints([]string{ownBucket}, "ls") },
					func() error { return s.run("rb", "s3://"+ownBucket) })
			}},
		},
	}
}
